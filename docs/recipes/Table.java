import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;

/** Rows of a query as lines of tab-separated text: java -cp postgresql.jar Table.java jdbc:postgresql://... "SELECT ...". */
public class Table {
    public static void main(String[] given) throws Exception {
        try (Connection connection = DriverManager.getConnection(given[0]);
                ResultSet rows = connection.createStatement().executeQuery(given[1])) {
            int columns = rows.getMetaData().getColumnCount();
            while (rows.next()) {
                List<String> cells = new ArrayList<>();
                for (int at = 1; at <= columns; at++) {
                    String cell = rows.getString(at); // exact: getDouble would round numeric(39,0)
                    cells.add(cell == null ? "\\N" : cell);
                }
                System.out.println(String.join("\t", cells));
            }
        }
    }
}

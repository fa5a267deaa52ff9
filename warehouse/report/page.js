"use strict";
// Filters (stored in the URL) and downloads. The charts work without this script.
const all = (what, inside = document) => [...inside.querySelectorAll(what)];
const filters = document.querySelector("form.filters");
const first = new Map(all("figure[data-hour]").map(one => [one, one.hidden]));
const names = ["hour", "leaf", "server"];

function state() {
  const [place, ...rest] = decodeURIComponent(location.hash.slice(1)).split("&");
  return { place, ...Object.fromEntries(rest.map(one => one.split(/=(.*)/s))) };
}

function apply() {
  if (!filters) return;
  const given = state();
  for (const name of names) {
    const field = filters.elements[name];
    field.value = given[name] ?? "";
    if (name === "hour" && !field.value) field.selectedIndex = 0;
  }
  const { hour, leaf, server } = given;
  for (const [one, hidden] of first) one.hidden = hour ? one.dataset.hour !== hour : hidden;
  const holds = one => (one.dataset.s ?? "").split(" ").includes(server);
  for (const svg of all(".panels svg")) {
    const owned = all(":scope > svg > [data-s]", svg.parentNode).length > 0;
    const lacks = server && svg.dataset.l && owned && !all("[data-s]", svg).some(holds);
    const other = leaf && svg.dataset.l && svg.dataset.l !== leaf;
    svg.classList.toggle("off", Boolean(lacks || other));
    for (const mark of all("[data-l], [data-s]", svg)) {
      const away = (leaf && mark.dataset.l && mark.dataset.l !== leaf) || (server && owned && !holds(mark));
      mark.classList.toggle("off", Boolean(away));
    }
  }
  for (const table of all("figure table")) rows(table, leaf, server);
  filters.elements.filtered.textContent = leaf || server ? `${[leaf, server].filter(Boolean).join(", ")}: others are faint or left out` : "";
}

function rows(table, leaf, server) {
  const columns = all("th", table).map(one => one.textContent);
  const at = (...those) => columns.findIndex(one => those.includes(one));
  const [of, owner] = [at("leaf", "switch"), at("server", "which")];
  if (of < 0 && owner < 0) return;
  for (const row of table.tBodies[0].rows) {
    const away = (leaf && of >= 0 && row.cells[of].textContent !== leaf)
      || (server && owner >= 0 && !row.cells[owner].textContent.split(" ").includes(server));
    row.classList.toggle("off", Boolean(away));
  }
}

function keep() {
  const parts = names.map(name => [name, filters.elements[name].value]).filter(([name, value]) => value && !(name === "hour" && filters.elements.hour.selectedIndex === 0));
  history.replaceState(null, "", "#" + [state().place, ...parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`)].join("&"));
  apply();
}

function come() {
  apply();
  const { place } = state();
  if (place && location.hash.includes("&")) document.getElementById(place)?.scrollIntoView();
}

if (filters) {
  filters.addEventListener("change", keep);
  filters.addEventListener("submit", event => { event.preventDefault(); keep(); });
  filters.addEventListener("reset", () => setTimeout(keep));
  // links within the page keep the filters
  document.addEventListener("click", event => {
    const link = event.target.closest?.("a[href^='#']");
    const kept = location.hash.split("&").slice(1);
    if (!link || !kept.length) return;
    event.preventDefault();
    location.hash = [link.getAttribute("href").slice(1), ...kept].join("&");
  });
}
addEventListener("hashchange", come);
come();

function save(text, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// exported for tests as window.report
const report = {
  csv(table) {
    const quoted = text => /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    return all("tr:not(.off)", table).map(row => [...row.cells].map(cell => quoted(cell.textContent)).join(",") + "\n").join("");
  },
  vector(figure) {
    const box = figure.querySelector(".panels").getBoundingClientRect();
    const inner = all(".panels svg:not(.off)", figure).map(svg => {
      const { left, top, width, height } = svg.getBoundingClientRect();
      const copy = svg.cloneNode(true);
      for (const [name, value] of Object.entries({ x: left - box.left, y: top - box.top, width, height })) copy.setAttribute(name, value.toFixed(1));
      return new XMLSerializer().serializeToString(copy);
    });
    const [width, height] = [box.width, box.height].map(one => Math.ceil(one));
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><style>${document.getElementById("paper").textContent}</style><rect width="${width}" height="${height}" fill="#fff"/>${inner.join("")}</svg>\n`;
  },
};
window.report = report;
for (const button of all("button.csv, button.vector")) {
  const figure = button.closest("figure, section");
  button.addEventListener("click", () => button.className === "csv"
    ? save(report.csv(figure.querySelector("table")), "text/csv", `${figure.id}.csv`)
    : save(report.vector(figure), "image/svg+xml", `${figure.id}.svg`));
}

// open the citations for printing
addEventListener("beforeprint", () => all("details.source:not([open])").forEach(one => { one.dataset.print = ""; one.open = true; }));
addEventListener("afterprint", () => all("details[data-print]").forEach(one => { delete one.dataset.print; one.open = false; }));

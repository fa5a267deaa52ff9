"use strict";
// Lineage graph: tables from left to right by dependency, with the columns of a path inside.
(() => {
  const { tables, reads, made, rows } = window.LINEAGE;
  const KINDS = ["literal", "copied", "computed", "aggregated"];
  const ROWS = -1;
  const numbers = new Map(tables.map(([name], at) => [name, at]));
  const readBy = tables.map(() => []);
  reads.forEach((several, at) => several.forEach(read => readBy[read].push(at)));
  const key = (table, column) => table + "." + column;
  const usedBy = new Map();   // column -> downstream columns
  made.forEach((columns, table) => columns.forEach(([, inputs], column) => inputs.forEach(([t, c]) => {
    if (!usedBy.has(key(t, c))) usedBy.set(key(t, c), []);
    usedBy.get(key(t, c)).push([table, column]);
  })));

  const nameOf = (table, column) => column === ROWS ? `the rows of ${tables[table][0]}` : `${tables[table][0]}.${tables[table][2][column]}`;

  // Parse metrics.port_hour or metrics.port_hour.in_bytes: [table, column], or nothing.
  function named(text) {
    const [layer, table, ...rest] = text.split(".");
    const at = numbers.get(`${layer}.${table}`);
    if (at === undefined) return null;
    if (!rest.length) return [at, null];
    const column = tables[at][2].indexOf(rest.join("."));
    return column < 0 ? null : [at, column];
  }

  // ---- nodes and edges

  function within(start, next, steps) {
    const found = new Set([start]);
    let edge = [start];
    for (let step = 0; step < steps && edge.length; step++) {
      edge = [...new Set(edge.flatMap(next))].filter(one => !found.has(one));
      edge.forEach(one => found.add(one));
    }
    return found;
  }

  function ofTable(table, up, down) {
    const shown = new Set([...within(table, one => reads[one], up), ...within(table, one => readBy[one], down)]);
    return { shown, columns: new Map([[table, tables[table][2].map((_, at) => at)]]), lines: [], chosen: table, column: null, near: up <= 1 && down <= 1 };
  }

  // True if the graph draws that a table reads another: of neighbors alone, only what touches the chosen table.
  const drawnRead = (view, one, read) => view.shown.has(read) && read !== one && (!view.near || one === view.chosen || read === view.chosen);

  function closure(start, next, steps) {
    const found = new Map([[key(...start), start]]);
    const lines = [];
    let edge = [start];
    for (let step = 0; step < steps && edge.length; step++) {
      const fresh = [];
      for (const one of edge) for (const other of next(one)) {
        lines.push([one, other]);
        if (!found.has(key(...other))) { found.set(key(...other), other); fresh.push(other); }
      }
      edge = fresh;
    }
    return { found: [...found.values()], lines };
  }

  const inputs = ([table, column]) => column === ROWS || !made[table][column] ? [] : made[table][column][1];
  const outputs = ([table, column]) => usedBy.get(key(table, column)) || [];

  function ofColumn(table, column, up, down) {
    const above = closure([table, column], inputs, up);
    const below = closure([table, column], outputs, down);
    const columns = new Map();
    for (const [t, c] of [...above.found, ...below.found]) {
      if (!columns.has(t)) columns.set(t, []);
      if (c !== ROWS && !columns.get(t).includes(c)) columns.get(t).push(c);
    }
    const lines = [...above.lines.map(([to, from]) => [from, to, "lit"]), ...below.lines.map(([from, to]) => [from, to, "lit"])];
    return { shown: new Set(columns.keys()), columns, lines, chosen: table, column, above, below };
  }

  // Columns that decide the rows of tables, each a dashed line to the table's name.
  function addRows(view, several) {
    for (const table of several) for (const [, , deciding] of rows[table]) for (const [t, c] of deciding) {
      if (t === table) continue;
      view.shown.add(t);
      if (!view.columns.has(t)) view.columns.set(t, []);
      if (c !== ROWS && !view.columns.get(t).includes(c)) view.columns.get(t).push(c);
      view.lines.push([[t, c], [table, ROWS], "rows"]);
    }
  }

  // ---- layout

  const HEAD = 28, LINE = 24, GAP = 14, SPACE = 70;   // a line is high enough for a finger

  function placed(view) {
    const nodes = [...view.shown].sort((a, b) => a - b);
    const inside = one => reads[one].filter(read => drawnRead(view, one, read));
    const rank = new Map();
    const rankOf = one => {
      if (!rank.has(one)) { rank.set(one, 0); rank.set(one, Math.max(-1, ...inside(one).map(rankOf)) + 1); }
      return rank.get(one);
    };
    nodes.forEach(rankOf);
    const readers = new Map(nodes.map(one => [one, []]));
    nodes.forEach(one => inside(one).forEach(read => readers.get(read).push(one)));
    for (const one of [...nodes].sort((a, b) => rank.get(b) - rank.get(a))) {   // close to its readers
      if (readers.get(one).length) rank.set(one, Math.min(...readers.get(one).map(reader => rank.get(reader))) - 1);
    }
    const layers = [];
    nodes.forEach(one => (layers[rank.get(one)] = layers[rank.get(one)] || []).push(one));
    const filled = layers.filter(Boolean);
    const at = new Map();
    const number = layer => layer.forEach((one, place) => at.set(one, place / layer.length));
    filled.forEach(number);
    const middle = (one, others) => others.length ? others.reduce((sum, other) => sum + at.get(other), 0) / others.length : at.get(one);
    for (let sweep = 0; sweep < 8; sweep++) {   // fewer crossings: order each layer by its neighbors
      const order = sweep % 2 ? [...filled].reverse() : filled;
      for (const layer of order) {
        const towards = sweep % 2 ? one => readers.get(one) : inside;
        const wanted = new Map(layer.map(one => [one, middle(one, towards(one))]));
        layer.sort((a, b) => wanted.get(a) - wanted.get(b) || a - b);
        number(layer);
      }
    }
    const boxes = new Map();
    let x = 10, highest = 0;
    for (const layer of filled) {
      let y = 10, widest = 0;
      for (const one of layer) {
        const columns = [...(view.columns.get(one) || [])].sort((a, b) => a - b);
        const longest = Math.max(tables[one][0].length * 6.7, ...columns.map(column => tables[one][2][column].length * 6.7)) + 24;
        const box = { x, y, columns, width: longest, height: HEAD + columns.length * LINE + (columns.length ? 5 : 0) };
        boxes.set(one, box);
        widest = Math.max(widest, longest);
        y += box.height + GAP;
      }
      layer.forEach(one => { boxes.get(one).width = widest; });
      layer.height = y;
      highest = Math.max(highest, y);
      x += widest + SPACE;
    }
    for (const layer of filled) layer.forEach(one => { boxes.get(one).y += (highest - layer.height) / 2; });
    return { boxes, width: x - SPACE + 10, height: highest };
  }

  // ---- drawing

  function element(name, attributes, ...inside) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [one, value] of Object.entries(attributes)) made.setAttribute(one, value);
    made.append(...inside);
    return made;
  }

  function curve(from, to) {
    const bend = Math.max(30, (to[0] - from[0]) / 2);
    return `M${from[0]},${from[1]}C${from[0] + bend},${from[1]} ${to[0] - bend},${to[1]} ${to[0]},${to[1]}`;
  }

  function drawn(view, page) {
    const { boxes, width, height } = placed(view);
    const port = ([table, column], right) => {
      const box = boxes.get(table);
      const row = column === ROWS ? -1 : box.columns.indexOf(column);
      return [box.x + (right ? box.width : 0), row < 0 ? box.y + HEAD / 2 : box.y + HEAD + (row + .5) * LINE];
    };
    const lines = [];
    if (view.column === null) {
      for (const one of view.shown) for (const read of reads[one]) {
        if (drawnRead(view, one, read)) lines.push([[read, ROWS], [one, ROWS], view.chosen === one || view.chosen === read ? "lit" : ""]);
      }
    }
    const seen = new Set();
    const paths = [...lines, ...view.lines].flatMap(([from, to, kind]) => {
      const line = `${key(...from)} ${key(...to)} ${kind}`;
      if (seen.has(line) || !boxes.has(from[0]) || !boxes.has(to[0]) || from[0] === to[0]) return [];
      seen.add(line);
      return [element("path", { d: curve(port(from, true), port(to, false)), class: kind, "data-from": from[0], "data-to": to[0] })];
    });
    const groups = [...boxes].map(([table, box]) => {
      const [name, about, columns] = tables[table];
      const group = element("g", { class: name.split(".")[0] + (table === view.chosen ? " chosen" : ""), "data-table": table });
      group.append(element("rect", { class: "box", x: box.x, y: box.y, width: box.width, height: box.height, rx: 3 }));
      group.append(element("rect", { class: "tab", x: box.x, y: box.y, width: 5, height: box.height, rx: 2 }));
      const title = element("title", {}, about);
      group.append(element("a", { href: `${page}#${name}` }, title, element("text", { x: box.x + 12, y: box.y + 18 }, name)));
      box.columns.forEach((column, at) => {
        const y = box.y + HEAD + at * LINE;
        if (table === view.chosen && column === view.column) group.append(element("rect", { class: "at", x: box.x + 6, y: y, width: box.width - 8, height: LINE }));
        const step = made[table][column] && made[table][column][1].length ? KINDS[made[table][column][0]] : "as read from the file";
        group.append(element("a", { href: `${page}#${name}.${columns[column]}` }, element("title", {}, step),
          element("text", { class: "column", x: box.x + 12, y: y + 16 }, columns[column])));
      });
      return group;
    });
    const label = view.chosen === null ? "All tables by dependency" : `Lineage of ${view.column === null ? tables[view.chosen][0] : nameOf(view.chosen, view.column)}`;
    return element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label }, ...paths, ...groups);
  }

  function put(box, view, page) {
    box.hidden = false;
    box.replaceChildren(drawn(view, page));
    box.view = view;
    center(box);
  }

  function center(box) {
    const chosen = box.querySelector(".chosen rect");
    const middle = (start, length) => Number(chosen.getAttribute(start)) + Number(chosen.getAttribute(length)) / 2;
    box.scrollLeft = chosen ? middle("x", "width") - box.clientWidth / 2 : 0;
    box.scrollTop = (chosen ? middle("y", "height") : box.scrollHeight / 2) - box.clientHeight / 2;
  }

  // Highlight the upstream and downstream tables of the hovered or focused one; fade the others.
  function keep(box, at) {
    const { shown } = box.view;
    const inside = next => one => next[one].filter(other => shown.has(other));
    const up = at === null ? null : within(at, inside(reads), 99);
    const down = at === null ? null : within(at, inside(readBy), 99);
    for (const group of box.querySelectorAll("g")) {
      const table = Number(group.dataset.table);
      group.classList.toggle("faint", at !== null && !up.has(table) && !down.has(table));
    }
    for (const path of box.querySelectorAll("path")) {
      const from = Number(path.dataset.from), to = Number(path.dataset.to);
      const near = at !== null && ((up.has(from) && up.has(to)) || (down.has(from) && down.has(to)));
      path.classList.toggle("faint", at !== null && !near);
      path.classList.toggle("near", near);
    }
  }

  function highlight(box) {
    const tableOf = target => { const group = target.closest("g"); return group ? Number(group.dataset.table) : null; };
    box.addEventListener("focusin", event => keep(box, tableOf(event.target)));
    box.addEventListener("focusout", () => keep(box, null));
    box.addEventListener("mouseover", event => keep(box, tableOf(event.target)));
    box.addEventListener("mouseleave", () => keep(box, null));
  }
  for (const box of document.querySelectorAll(".graph")) highlight(box);

  // ---- the small graph on the page of a table

  for (const box of document.querySelectorAll(".graph[data-focus]")) {
    const at = numbers.get(box.dataset.focus);
    const view = ofTable(at, Number(box.dataset.up), Number(box.dataset.down));
    view.columns = new Map();
    if (view.shown.size > 1) put(box, view, `${root}lineage.html`);
  }

  // ---- the page of lineage

  const box = document.getElementById("graph");
  if (!box) return;
  const control = name => document.getElementById(name);

  // Lineage as text, with links to table pages.
  function say(view) {
    const link = ([table, column]) => {
      const a = document.createElement("a");
      a.href = `tables/${tables[table][0]}.html${column === ROWS || column === null ? "" : "#" + tables[table][2][column]}`;
      a.textContent = column === null ? tables[table][0] : nameOf(table, column);
      return a;
    };
    const paragraph = (text, several) => {
      const p = document.createElement("p");
      p.append(text);
      several.forEach((one, at) => p.append(at ? ", " : "", link(one)));
      return p;
    };
    if (view.chosen === null) return [];
    if (view.column === null) {
      return [paragraph("The page of ", [[view.chosen, null]]), paragraph("Reads ", reads[view.chosen].map(one => [one, null])),
        paragraph("Read by ", readBy[view.chosen].map(one => [one, null]))].filter(p => p.querySelector("a"));
    }
    const here = [view.chosen, view.column];
    const paragraphs = [paragraph("", [here])];
    paragraphs[0].append(inputs(here).length ? ` is ${KINDS[made[here[0]][here[1]][0]]} from ` : " is as read from the file.");
    inputs(here).forEach((one, at) => paragraphs[0].append(at ? ", " : "", link(one)));
    const all = closure(here, inputs, 99).found.filter(one => !inputs(one).length && one !== here);
    if (all.length) paragraphs.push(paragraph("It derives from ", all));
    const after = closure(here, outputs, 99).found.slice(1);
    paragraphs.push(after.length ? paragraph(`${after.length} downstream column${after.length > 1 ? "s" : ""}: `, after) : paragraph("No downstream column.", []));
    const deciding = [...new Map(rows[view.chosen].flatMap(([, , some]) => some).map(one => [key(...one), one])).values()];
    if (deciding.length) paragraphs.push(paragraph(`Rows of ${tables[view.chosen][0]} are decided by `, deciding));
    return paragraphs;
  }

  const ALL = "all";   // the hash of the whole graph
  // The table shown first: the one with most neighbors of the metrics, which are the tables to cite.
  const neighbors = at => reads[at].length + readBy[at].length;
  const first = tables.map(([name], at) => [name, at]).filter(([name], _, all) => name.startsWith("metrics.") || !all.some(([one]) => one.startsWith("metrics.")))
    .sort(([, a], [, b]) => neighbors(b) - neighbors(a) || a - b)[0];

  function draw() {
    const given = decodeURIComponent(location.hash.slice(1));
    const anchor = given && given !== ALL && !named(given) && document.getElementById(given);
    if (anchor) return;   // an anchor of this page
    const text = given === ALL || !first ? "" : named(given) ? given : first[0];
    const found = text && named(text);
    const up = Number(control("up").value), down = Number(control("down").value);
    let view = { shown: new Set(tables.keys()), columns: new Map(), lines: [], chosen: null, column: null };
    if (found) {
      view = found[1] === null ? ofTable(found[0], up, down) : ofColumn(...found, up, down);
      if (control("rows").value === "focus") addRows(view, [found[0]]);
      if (control("rows").value === "all") addRows(view, [...view.shown].filter(one => one === found[0] || found[1] === null || view.above.found.some(([t]) => t === one)));
    }
    control("focus").value = found ? text : "";
    put(box, view, "");
    control("steps").replaceChildren(...say(view));
  }

  control("names").append(...tables.flatMap(([name, , columns]) => [name, ...columns.map(column => `${name}.${column}`)]).map(name => {
    const option = document.createElement("option");
    option.value = name;
    return option;
  }));
  const form = document.querySelector(".controls");
  form.hidden = false;
  control("graph-keys").hidden = control("graph-legend").hidden = false;
  form.addEventListener("submit", event => event.preventDefault());
  control("focus").addEventListener("change", () => { if (named(control("focus").value)) location.hash = control("focus").value; });
  ["up", "down", "rows"].forEach(name => control(name).addEventListener("change", draw));
  addEventListener("hashchange", draw);
  addEventListener("popstate", draw);
  draw();
})();

"use strict";
// Draw each chart as it comes near the screen; all of them before a print.
const pending = new Map(JSON.parse(document.getElementById("specs").textContent).map(one => ["chart-" + one.id, one]));
const drawn = new Map();

function draw(element) {
  const one = pending.get(element.id);
  if (!one) return Promise.resolve();
  pending.delete(element.id);
  drawn.set(element.id, one);
  // pixels do not know the colour of the page
  const ink = one.renderer === "canvas" ? getComputedStyle(element).color : "currentColor";
  const spec = JSON.parse(JSON.stringify(one.spec).replaceAll('"currentColor"', JSON.stringify(ink)));
  const options = { actions: false, renderer: one.renderer, ast: false, tooltip: { theme: dark.matches ? "dark" : "light" } };
  return vegaEmbed(element, spec, options).then(
    result => { element.dataset.state = "drawn"; one.view = result.view; },
    error => { element.dataset.state = "failed"; element.textContent = "This chart could not be drawn: " + error.message; });
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const charts = [...document.querySelectorAll(".chart")];
const drawAll = () => Promise.all(charts.map(draw)).then(() => { document.documentElement.dataset.charts = "drawn"; });
const near = new IntersectionObserver(seen => {
  for (const { isIntersecting, target } of seen) if (isIntersecting) { near.unobserve(target); draw(target); }
}, { rootMargin: "1000px" });
charts.forEach(chart => near.observe(chart));
// the rest a moment later, so that search and print find all
setTimeout(drawAll, 200);

// pixels do not follow the colour of the page by themselves
function again() {
  for (const [id, one] of drawn) if (one.renderer === "canvas") { pending.set(id, one); draw(document.getElementById(id)); }
}
dark.addEventListener("change", again);

// a citation is of use on paper
addEventListener("beforeprint", () => document.querySelectorAll("details.cite").forEach(one => { one.open = true; }));
addEventListener("afterprint", () => document.querySelectorAll("details.cite").forEach(one => { one.open = false; }));

"use strict";
// Search over tables, columns, queries, servers, pages and words, tolerant of typos; then the table filter.
const root = document.documentElement.dataset.root;
const box = document.getElementById("search-box");
const below = document.getElementById("search-box-below");
const list = document.getElementById("search-found");
const form = document.querySelector(".search");
const MOST = 16;
const WORTH = { table: 1.5, query: 1.3, server: 1.3, switch: 1.3, word: 1.2, format: 1.2, column: 1, page: .9 };
const LAYER = { metrics: 1, topology: .95, staging: .8, reference: .75, raw: .7 };   // most useful first
const LIKE = .5;   // weight of a synonym relative to the word itself
let index = null;
let loading = false;
let chosen = -1;

form.hidden = false;

// ---- the index, built from window.SEARCH on first use

const plain = text => text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
const words = text => plain(text).match(/[\p{L}\p{N}]+/gu) || [];

function made() {
  const postings = new Map();   // word -> [entry, weight, entry, weight ...]
  const add = (word, entry, weight) => {
    const found = postings.get(word);
    if (!found) postings.set(word, [entry, weight]);
    else if (found.at(-2) === entry) found[found.length - 1] = Math.max(found[found.length - 1], weight);
    else found.push(entry, weight);
  };
  window.SEARCH.entries.forEach(([kind, title, text], entry) => {
    const own = kind === "column" ? title.split(".").slice(2).join(".") : title;   // the table name counts less
    const named = words(own);
    for (const word of named) add(word, entry, 8 / Math.sqrt(named.length));
    for (const whole of plain(own).match(/[\p{L}\p{N}_]+/gu) || []) add(whole, entry, 10);
    if (own !== title) for (const word of words(title)) add(word, entry, 1.5);
    for (const word of words(text)) add(word, entry, 1);
  });
  return postings;
}

// Damerau-Levenshtein distance, capped above `most`.
function edits(one, other, most) {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  let before = [], row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    let least = i;
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1];
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
      least = Math.min(least, next[j]);
    }
    if (least > most) return most + 1;
    before = row;
    row = next;
  }
  return row[other.length];
}

// Index words that match a typed word, with weights.
function meant(typed) {
  const allowed = typed.length < 4 ? 0 : typed.length < 8 ? 1 : 2;
  const found = [];
  for (const word of index.keys()) {
    if (word === typed) found.push([word, 1]);
    else if (word.startsWith(typed)) found.push([word, .5 + .4 * typed.length / word.length]);
    else if (typed.length > 3 && word.includes(typed)) found.push([word, .3]);
    else if (allowed) {
      const off = edits(typed, word, allowed);
      if (off <= allowed) found.push([word, .5 / off]);
      // a typo in the prefix of a longer word
      else if (word.length > typed.length && edits(typed, word.slice(0, typed.length), 1) <= 1) found.push([word, .2]);
    }
  }
  return found;
}

function search(text) {
  const typed = [...new Set(plain(text).match(/[\p{L}\p{N}_]+/gu) || [])];
  const scores = new Map();
  for (const one of typed) {
    const best = new Map();
    const also = (window.SEARCH.synonyms[one] || []).map(other => [other, LIKE]);
    const spread = one.includes("_") ? [[one, 1], ...words(one).map(part => [part, index.has(one) ? .1 : .3])] : [[one, 1]];
    for (const [part, share] of [...spread, ...also]) for (const [word, worth] of meant(part)) {
      const found = index.get(word);
      const rare = Math.log(1 + window.SEARCH.entries.length / (found.length / 2));
      for (let at = 0; at < found.length; at += 2) {
        const column = share === LIKE && window.SEARCH.entries[found[at]][0] === "column" ? 4 : 1;
        const score = share * worth * rare * found[at + 1] * column;
        if (score > (best.get(found[at]) || 0)) best.set(found[at], score);
      }
    }
    for (const [entry, score] of best) {
      const sum = scores.get(entry) || [0, 0];
      scores.set(entry, [sum[0] + 1, sum[1] + score]);
    }
  }
  const worth = ([entry, [hits, score]]) => {
    const [kind, title, text] = window.SEARCH.entries[entry];
    const layer = (kind === "table" || kind === "column") && LAYER[title.split(".")[0]] || 1;
    return hits * 1000 + score * WORTH[kind] * layer / (1 + Math.log(1 + text.length / 400));
  };
  return [...scores].sort((a, b) => worth(b) - worth(a) || a[0] - b[0]).slice(0, MOST).map(([entry]) => window.SEARCH.entries[entry]);
}

// ---- results

function show() {
  if (!index) return load();
  const found = box.value.trim() ? search(box.value) : [];
  chosen = found.length ? 0 : -1;
  list.replaceChildren(...found.map(([kind, title, text, href], at) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const name = document.createElement("b");
    const note = document.createElement("small");
    item.id = "search-found-" + at;
    item.setAttribute("role", "option");
    link.href = root + href;
    link.tabIndex = -1;
    name.textContent = title;
    note.textContent = ` ${kind} · ${text.length > 140 ? text.slice(0, 139) + "…" : text}`;
    link.append(name, note);
    item.append(link);
    return item;
  }));
  const also = words(box.value).flatMap(word => window.SEARCH.synonyms[word] || []);
  const note = box.value.trim() && !found.length ? "No match." : also.length ? `Also searched for ${also.join(", ")}.` : "";
  document.getElementById("search-note").textContent = note;
  document.getElementById("search-count").textContent = box.value.trim() ? `${found.length} found. ${note}` : "";
  open(Boolean(box.value.trim()));
  mark();
}

function open(yes) {
  below.hidden = !yes;
  box.setAttribute("aria-expanded", yes);
}

function mark() {
  [...list.children].forEach((item, at) => item.setAttribute("aria-selected", at === chosen));
  const item = list.children[chosen];
  if (chosen >= 0 && item) { box.setAttribute("aria-activedescendant", item.id); item.scrollIntoView({ block: "nearest" }); }
  else box.removeAttribute("aria-activedescendant");
}

function load() {
  if (loading) return;
  loading = true;
  const script = document.createElement("script");
  script.src = root + "assets/search.js";
  script.onload = () => { index = made(); show(); };
  document.head.append(script);
}

box.addEventListener("focus", load);
box.addEventListener("input", show);
box.addEventListener("keydown", event => {
  const count = list.querySelectorAll("a").length;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (count) chosen = (chosen + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
    mark();
  } else if (event.key === "Enter") {
    const link = list.children[chosen] && list.children[chosen].querySelector("a");
    if (link && !below.hidden) { link.click(); open(false); }
  } else if (event.key === "Escape") {
    box.value = "";
    show();
    box.blur();
  } else return;
  event.preventDefault();
});
form.addEventListener("submit", event => event.preventDefault());
form.addEventListener("focusout", event => { if (!form.contains(event.relatedTarget)) open(false); });
below.addEventListener("mousedown", event => event.preventDefault());   // a click keeps the focus
list.addEventListener("click", () => open(false));
document.addEventListener("keydown", event => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});

// ---- filter of switches and servers, stored in the URL

const filter = document.getElementById("filter");
if (filter) {
  const odd = document.getElementById("only-odd");
  const rows = [...document.querySelectorAll(".filtered tbody tr")].map(row => [row, plain(row.textContent)]);
  const sift = () => {
    const typed = plain(filter.value).split(/\s+/).filter(Boolean);
    const whole = word => (/\d$/.test(word) ? text => new RegExp(word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "(?!\\d)").test(text) : text => text.includes(word));
    const tests = typed.map(whole);   // leaf-1 is not leaf-10
    let left = 0;
    for (const [row, text] of rows) {
      row.hidden = (odd.checked && !row.classList.contains("odd")) || !tests.every(test => test(text));
      if (!row.hidden) left++;
    }
    document.getElementById("filter-count").textContent = `${left} of ${rows.length} rows`;
    const address = new URLSearchParams([...(filter.value ? [["q", filter.value]] : []), ...(odd.checked ? [["odd", "1"]] : [])]);
    history.replaceState(null, "", `${location.pathname}${String(address) && "?" + address}${location.hash}`);
  };
  const given = new URLSearchParams(location.search);
  filter.value = given.get("q") || "";
  odd.checked = given.has("odd");
  filter.form.hidden = false;
  filter.form.addEventListener("submit", event => event.preventDefault());
  filter.addEventListener("input", sift);
  odd.addEventListener("change", sift);
  sift();
}

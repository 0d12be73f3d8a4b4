"use strict";

// ---- code: folded for reviewers, open for students --------------------------------------------
const memory = {
  get() { try { return localStorage.getItem("ingroup-code"); } catch { return null; } },
  set(value) { try { localStorage.setItem("ingroup-code", value); } catch { /* a private window */ } },
};
const codeButton = document.getElementById("code");
function showCode(open) {
  for (const part of document.querySelectorAll("details.code")) part.open = open;
  codeButton.textContent = open ? "Hide all code" : "Show all code";
  codeButton.setAttribute("aria-pressed", String(open));
}
if (codeButton) {
  const asked = () => location.hash === "#code" || /[?&]code=open\b/.test(location.search);
  showCode(asked() || memory.get() === "open");
  codeButton.addEventListener("click", () => {
    const open = codeButton.getAttribute("aria-pressed") !== "true";
    showCode(open);
    memory.set(open ? "open" : "folded");
  });
  window.addEventListener("hashchange", () => { if (asked()) showCode(true); });
}

// ---- contents: a sidebar where there is room, a menu where there is none ----------------------
const contents = document.querySelector("details.contents");
if (contents) {
  const narrow = matchMedia("(max-width: 63rem)");
  const fold = () => { contents.open = !narrow.matches; };
  fold();
  narrow.addEventListener("change", fold);
  contents.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) contents.open = false;
  });
  const links = [...contents.querySelectorAll("a")];
  const place = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));
  const mark = () => {
    const here = links.findLast((link) => place(link)?.getBoundingClientRect().top < 120);
    for (const link of links) link.ariaCurrent = link === here ? "true" : null;
    if (!here || narrow.matches) return;
    const side = document.querySelector(".side"), box = here.getBoundingClientRect();
    if (box.top < 60 || box.bottom > innerHeight - 40) side.scrollTop += box.top - innerHeight / 2;
  };
  addEventListener("scroll", mark, { passive: true }); // at most once a frame
  mark();
}

// ---- figures that enlarge -----------------------------------------------------------------------
const zoom = document.getElementById("zoom");
const zoomed = document.getElementById("zoomed");
for (const button of document.querySelectorAll("button.enlarge")) {
  button.addEventListener("click", () => {
    const picture = button.querySelector("img");
    zoomed.src = picture.src;
    zoomed.alt = picture.alt;
    document.getElementById("zoomtext").textContent = picture.alt;
    zoom.showModal();
  });
}
document.getElementById("close").addEventListener("click", () => zoom.close());
zoom.addEventListener("click", (event) => { if (event.target === zoom) zoom.close(); });

// ---- tables that sort -----------------------------------------------------------------------------
const MISSING = new Set(["", "nan", "<na>", "none", "nat", "–", "—"]);
const text = (cell) => (cell ? cell.textContent.trim() : "");
const words = new Intl.Collator("en", { numeric: true });

function number(said) {
  const plain = said.replace(/[\s,]/g, "").replace(/^[\u2212\u2013]/, "-").replace(/(%|\*{1,3})$/, "");
  if (/^[-+]?inf$/.test(plain)) return plain.startsWith("-") ? -Infinity : Infinity;
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}

// The cells of a group of rows as a rectangle; a cell that spans stands in every place it covers.
function rectangle(rows) {
  const grid = rows.map(() => []);
  rows.forEach((row, y) => {
    let x = 0;
    for (const cell of row.cells) {
      while (grid[y][x]) x++;
      for (let dy = 0; dy < cell.rowSpan && y + dy < rows.length; dy++) {
        for (let dx = 0; dx < cell.colSpan; dx++) grid[y + dy][x + dx] = cell;
      }
      x += cell.colSpan;
    }
  });
  return grid;
}

// A cell that spans rows is repeated in each of them: rows can then stand in any order.
function unspan(body) {
  const rows = [...body.rows], grid = rectangle(rows);
  rows.forEach((row, y) => {
    row.replaceChildren(...[...new Set(grid[y])].map((cell) => {
      const copy = cell.cloneNode(true);
      copy.removeAttribute("rowspan");
      return copy;
    }));
  });
}

function sortable(table) {
  const body = table.tBodies[0];
  if (!table.tHead || !body || body.rows.length < 2) return;
  const values = rectangle([...body.rows]);
  const width = Math.max(...values.map((row) => row.length));
  const head = rectangle([...table.tHead.rows]);
  for (let x = 0; x < width; x++) {
    // The lowest header of this column alone that has a name.
    const named = head.map((row) => row[x])
      .filter((cell) => cell && cell.colSpan === 1 && text(cell));
    const header = named.at(-1);
    if (!header) continue;
    const told = values.map((row) => text(row[x])).filter((one) => !MISSING.has(one.toLowerCase()));
    const numeric = told.length > 0 && told.every((one) => !Number.isNaN(number(one)));
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...header.childNodes);
    header.append(button);
    header.classList.toggle("n", numeric);
    header.ariaSort = "none";
    button.addEventListener("click", () => {
      const way = header.ariaSort === "ascending" ? "descending" : "ascending";
      for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.ariaSort = "none";
      header.ariaSort = way;
      unspan(body);
      const keyed = [...body.rows].map((row) => ({ row, text: text(rectangle([row])[0][x]) }));
      const sign = way === "ascending" ? 1 : -1;
      keyed.sort((one, other) => {
        const gone = MISSING.has(one.text.toLowerCase()) - MISSING.has(other.text.toLowerCase());
        if (gone) return gone; // what is missing stands last, whichever way
        if (!numeric) return sign * words.compare(one.text, other.text);
        const a = number(one.text), b = number(other.text);
        return a === b || (Number.isNaN(a) && Number.isNaN(b)) ? 0 : sign * (a < b ? -1 : 1);
      });
      body.append(...keyed.map((one) => one.row));
    });
  }
}
for (const table of document.querySelectorAll("table:not(.claims)")) sortable(table);

// The verdict stays in view where a table is wider than the page; a long table scrolls in its box.
for (const table of document.querySelectorAll(".scroll > table:not(.claims)")) {
  if (table.rows.length > 40) table.parentElement.classList.add("long");
  const head = table.tHead ? [...table.tHead.rows[0].cells] : [];
  const place = head.findIndex((cell) => /^verdict/.test(text(cell)));
  if (place < 0) continue;
  for (const row of table.rows) {
    const cell = row.cells[row.cells.length - head.length + place]; // names may span rows
    if (cell) cell.classList.add("verdict");
  }
}

// A box that scrolls can be reached and moved from the keyboard.
for (const box of document.querySelectorAll(".scroll, pre")) {
  if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight + 4) box.tabIndex = 0;
}

// ---- paper: what is folded away on the screen is printed, code is not -----------------------------
// A table that scrolls on the screen is made small enough for the paper (17 cm, 8 points).
const PAPER = 640, SMALLER = (8 * 96) / 72 / 14;
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not(.code):not(.log):not([open])")];
  for (const part of opened) part.open = true;
  for (const table of document.querySelectorAll("table")) {
    const width = table.offsetWidth * SMALLER;
    if (width > PAPER) table.style.zoom = Math.max(0.4, PAPER / width);
  }
});
addEventListener("afterprint", () => {
  for (const part of opened) part.open = false;
  for (const table of document.querySelectorAll("table")) table.style.zoom = "";
});

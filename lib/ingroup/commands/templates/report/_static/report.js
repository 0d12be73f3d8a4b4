"use strict";
// Sphinx loads this in the head of each page.
addEventListener("DOMContentLoaded", () => {
  foldCode();
  openMenus();
  for (const table of document.querySelectorAll(".out table")) sortable(table);
  // A box that scrolls can be reached and moved from the keyboard.
  for (const box of document.querySelectorAll(".scroll, pre")) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight + 4) box.tabIndex = 0;
  }
});

// ---- menus of a phone: the theme's header opens them, and report.css hides that header ----------
function openMenus() {
  const narrow = matchMedia("(max-width: 959.98px)");
  for (const name of [".primary-toggle", ".secondary-toggle"]) {
    const opener = document.querySelector(`#pst-header ${name}`);
    for (const button of document.querySelectorAll(`.bd-header-article ${name}`)) {
      button.addEventListener("click", () => { if (narrow.matches) opener?.click(); });
    }
  }
}

// ---- code: folded for reviewers, open for students --------------------------------------------
const memory = {
  get() { try { return localStorage.getItem("ingroup-code"); } catch { return null; } },
  set(value) { try { localStorage.setItem("ingroup-code", value); } catch { /* a private window */ } },
};

function foldCode() {
  const parts = document.querySelectorAll(".tag_hide-input > details.above-input");
  const header = document.querySelector(".article-header-buttons");
  if (!parts.length || !header) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "show-code";
  header.prepend(button);
  const show = (open) => {
    for (const part of parts) part.open = open;
    button.textContent = open ? "Hide all code" : "Show all code";
    button.setAttribute("aria-pressed", String(open));
  };
  show(/[?&]code=open\b/.test(location.search) || memory.get() === "open");
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-pressed") !== "true";
    show(open);
    memory.set(open ? "open" : "folded");
  });
}

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
// Its copies for a phone (report_tables.py) are passed over.
function rectangle(rows) {
  const grid = rows.map(() => []);
  rows.forEach((row, y) => {
    let x = 0;
    for (const cell of row.cells) {
      if (cell.classList.contains("again")) continue;
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
  const columns = [];
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
    const names = head.map((row) => text(row[x])).filter(Boolean);
    columns.push({ header, button, name: [...new Set(names)].join(", ") });
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
  if (table.classList.contains("wide")) sortMenu(table, columns);
}

// Where a phone shows rows as records, there are no headers to click: a menu has the columns.
function sortMenu(table, columns) {
  const menu = document.createElement("select");
  menu.add(new Option("a column"));
  for (const { header, button, name } of columns) {
    for (const way of ["ascending", "descending"]) {
      const option = new Option(`${name}, ${way}`);
      option.addEventListener("sort", () => { do button.click(); while (header.ariaSort !== way); });
      menu.add(option);
    }
  }
  menu.addEventListener("change", () => menu.selectedOptions[0].dispatchEvent(new Event("sort")));
  const label = document.createElement("label");
  label.className = "sort";
  label.append("Sort records by ", menu);
  table.before(label);
}
// ---- paper: a table that is wider than a page with 8 points is made small enough ----------
const LEAST = 0.75; // of 8 points: a table that needs smaller type has a page across
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("paper");
  for (const box of document.querySelectorAll(".scroll")) {
    const table = box.querySelector("table");
    if (box.scrollWidth * LEAST > box.clientWidth) box.classList.add("broad");
    if (box.scrollWidth > box.clientWidth) table.style.zoom = Math.max(0.4, box.clientWidth / box.scrollWidth);
  }
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("paper");
  for (const box of document.querySelectorAll(".broad")) box.classList.remove("broad");
  for (const table of document.querySelectorAll("table")) table.style.zoom = "";
});

// Draws the pictures of a page, when they come into view, from the data in the element "pictures".
"use strict";
const pictures = JSON.parse(document.getElementById("pictures").textContent);

function rowsOf(data) {
  const names = Object.keys(data);
  return (data[names[0]] || []).map((_, i) => Object.fromEntries(names.map((name) => [name, data[name][i]])));
}

function written(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  return String(Number(value.toPrecision(6)));
}

function fillTable(figure, data) {
  const table = figure.querySelector("details table");
  if (table.rows.length) return;
  const head = table.createTHead().insertRow(), body = table.createTBody();
  for (const [name, column] of Object.entries(data)) {
    const heading = head.appendChild(document.createElement("th"));
    heading.textContent = name;
    if (typeof column[0] === "number") heading.className = "number";
  }
  for (const row of rowsOf(data)) {
    const line = body.insertRow();
    for (const value of Object.values(row)) {
      const cell = line.insertCell();
      cell.textContent = written(value);
      if (typeof value === "number") cell.className = "number";
    }
  }
}

class Drawn {
  constructor(figure, picture) {
    this.figure = figure;
    this.picture = picture;
    this.views = [];
    this.shown = picture.span;
    const details = figure.querySelector("details");
    details.addEventListener("toggle", () => fillTable(figure, picture.data));
    if (picture.span) this.makeZoomable();
  }

  draw() {
    if (this.asked) return;
    this.asked = true;
    const values = rowsOf(this.picture.data);
    this.figure.querySelectorAll(".panel").forEach(async (place, i) => {
      const spec = {
        ...this.picture.panels[i],
        width: "container",
        autosize: { type: "fit-x", contains: "padding" },
        data: { name: "table", values },
        config: { ...this.picture.config, font: getComputedStyle(document.body).fontFamily },
        params: this.shown ? ["begin", "end"].map((name, at) => ({ name, value: this.shown[at] })) : [],
      };
      const made = await vegaEmbed(place, spec, {
        renderer: "svg", actions: false, mode: "vega-lite", tooltip: { disableDefaultStyle: true },
      });
      this.views.push(made.view);
    });
  }

  show(begin, end) {
    const [first, last] = this.picture.span;
    const length = Math.max(Math.min(end - begin, last - first), (last - first) / 1e5);
    begin = Math.max(first, Math.min(begin, last - length));
    this.shown = [begin, begin + length];
    for (const view of this.views) view.signal("begin", begin).signal("end", begin + length).runAsync();
  }

  zoom(factor, at = 0.5) {
    const [begin, end] = this.shown, centre = begin + at * (end - begin);
    this.show(centre - (centre - begin) * factor, centre - (centre - begin) * factor + (end - begin) * factor);
  }

  move(share) {
    const [begin, end] = this.shown, step = share * (end - begin);
    this.show(begin + step, end + step);
  }

  makeZoomable() {
    const actions = {
      "+": () => this.zoom(0.5), "−": () => this.zoom(2), "←": () => this.move(-0.4),
      "→": () => this.move(0.4), "whole": () => this.show(...this.picture.span),
    };
    for (const button of this.figure.querySelectorAll(".zoom button")) {
      button.addEventListener("click", actions[button.textContent]);
    }
    const panels = this.figure.querySelector(".panels");
    panels.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return; // the wheel alone scrolls the page
      event.preventDefault();
      const box = event.currentTarget.getBoundingClientRect();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
    }, { passive: false });
    panels.addEventListener("mousedown", (event) => {
      let from = event.clientX;
      const drag = (moved) => {
        this.move((from - moved.clientX) / panels.clientWidth);
        from = moved.clientX;
      };
      addEventListener("mousemove", drag);
      addEventListener("mouseup", () => removeEventListener("mousemove", drag), { once: true });
      event.preventDefault();
    });
  }
}

const drawn = new Map();
for (const figure of document.querySelectorAll("figure[data-picture]")) {
  drawn.set(figure, new Drawn(figure, pictures[figure.dataset.picture]));
}
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawn.get(entry.target).draw();
}, { rootMargin: "600px" });
drawn.forEach((_, figure) => watcher.observe(figure));
addEventListener("beforeprint", () => drawn.forEach((one) => one.draw()));

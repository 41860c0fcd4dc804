"use strict";
(() => {
  // All text goes in as text nodes and attributes, never as markup: names come from data.
  const SVG = "http://www.w3.org/2000/svg";

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== null) node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  }
  const html = (tag, attributes = {}, ...children) =>
    fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);
  const path = (name, d) => svg("path", { class: name, d });
  const px = (value) => Math.round(value * 10) / 10;

  // --- numbers ----------------------------------------------------------------------------------

  const minus = (text) => text.replace("-", "\u2212");
  function shown(value, sign) {
    if (value === null) return "\u2013";
    const plus = sign && value > 0 ? "+" : "";
    const size = Math.abs(value);
    return plus + minus(size > 0 && size < 1e-3 ? value.toPrecision(3) : value.toFixed(4));
  }
  function tickText(value) {
    const size = Math.abs(value);
    if (size >= 1e3 && size < 1e8) return minus(value.toLocaleString("en"));
    if (size >= 1e8 || (size > 0 && size < 1e-3)) return minus(value.toExponential(0));
    return minus(Number(value.toPrecision(4)).toString());
  }
  function linearTicks(low, high) {
    const rough = (high - low) / 7;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12) + 1e-15; i++) {
      ticks.push(i * step);
    }
    return ticks;
  }
  function logTicks(low, high) {
    const factors = high / low < 300 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
      for (const factor of factors) ticks.push(factor * 10 ** p);
    }
    const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    const every = Math.ceil(inside.length / 9);
    return inside.filter((_, place) => place % every === 0);
  }
  function scale([low, high], start, stop, log) {
    const turn = log ? Math.log : (value) => value;
    const [a, b] = [turn(low), turn(high)];
    const at = (value) => start + ((turn(value) - a) / (b - a || 1)) * (stop - start);
    return { at, low, start, stop, ticks: log ? logTicks(low, high) : linearTicks(low, high) };
  }

  // --- what both kinds of chart share -----------------------------------------------------------

  let groups = 0;
  function choice(options, onChange) {
    const group = `choice-${groups++}`;
    const box = html("fieldset", { class: "choice" }, html("legend", { class: "hidden" }, "Metric"));
    options.forEach((text, place) => {
      const input = html("input", { type: "radio", name: group, checked: place === 0 });
      input.addEventListener("change", () => onChange(place));
      box.append(html("label", {}, input, html("span", {}, text)));
    });
    return box;
  }
  function toggle(label, on, onChange) {
    const input = html("input", { type: "checkbox", checked: on });
    input.addEventListener("change", () => onChange(input.checked));
    return html("label", { class: "toggle" }, input, label);
  }
  const key = (drawn, text) => html("li", { class: "key" }, sample(...drawn), text);
  const sample = (...drawn) =>
    svg("svg", { viewBox: "0 0 36 12", width: 36, height: 12, "aria-hidden": "true" }, ...drawn);
  const lineSample = (style) => path(`line s${style}`, "M1 6H35");
  // The shape says it too: a full circle is sure, a square is not.
  const health = (row) => (row.sure ? "sure" : "unsure");
  function point(name, x, y) {
    const shape = name === "sure" ? "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0" : "m-3.5-3.5h7v7h-7z";
    return path(`point ${name}`, `M${px(x)} ${px(y)}${shape}`);
  }

  // Paper has its own width, and letters on it must not shrink with a wide window.
  const redraws = [];
  let printing = false;
  for (const [name, now] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(name, () => {
      printing = now;
      redraws.forEach((draw) => draw());
    });
  }
  function axis(x, bottom, label, top) {
    const marks = x.ticks.flatMap((tick) => [
      path("grid", `M${px(x.at(tick))} ${top}V${bottom}`),
      svg("text", { x: px(x.at(tick)), y: bottom + 17, "text-anchor": "middle" }, tickText(tick)),
    ]);
    const middle = { class: "strong", x: px((x.start + x.stop) / 2), y: bottom + 36 };
    return [...marks, svg("text", { ...middle, "text-anchor": "middle" }, label)];
  }

  // A frame draws what `parts` says: it has the controls, the keys, and what is pointed at.
  function frame(figure, spec, hint) {
    const readout = html("div", { class: "readout", role: "status", "aria-live": "polite", hidden: true });
    const canvas = html("div", {
      class: "canvas", tabindex: 0, role: "group", "aria-roledescription": "chart",
      "aria-label": `${spec.title}. ${hint}`,
      "aria-describedby": figure.querySelector("figcaption").id,
    });
    const controls = html("div", { class: "controls" });
    const keys = html("ul", { class: "keys", "aria-label": "Legend" });
    figure.querySelector(".stage").append(controls, keys, canvas);
    const held = { view: 0, at: null, controls, keys, parts: null };

    const show = (size, label, marks, spot) => {
      const drawing = svg("svg", { viewBox: `0 0 ${size.join(" ")}`, role: "img", "aria-label": label },
        ...marks);
      canvas.replaceChildren(drawing, readout);
      readout.hidden = held.at === null;
      if (held.at === null) return;
      const room = canvas.clientWidth - readout.offsetWidth;
      const left = spot[0] + 16 <= room ? spot[0] + 16 : spot[0] - 16 - readout.offsetWidth;
      readout.style.left = `${Math.max(0, Math.min(left, room))}px`;
      readout.style.top = `${Math.max(0, spot[1])}px`;
    };
    held.draw = () => {
      const width = printing ? 680 : Math.max(canvas.clientWidth, 260);
      show(...held.parts.draw(width));
    };
    held.go = (at) => {
      held.at = at === null ? null : Math.max(0, Math.min(held.parts.size() - 1, at));
      if (at !== null) {
        const [title, items] = held.parts.tell(held.at);
        readout.replaceChildren(html("b", {}, title), html("ul", {}, ...items));
      }
      held.draw();
    };
    const step = (by) => held.go(held.at === null ? (by > 0 ? 0 : held.parts.size() - 1) : held.at + by);
    const moves = {
      ArrowRight: () => step(1), ArrowDown: () => step(1), ArrowLeft: () => step(-1), ArrowUp: () => step(-1),
      Home: () => held.go(0), End: () => held.go(held.parts.size() - 1), Escape: () => held.go(null),
    };
    canvas.addEventListener("keydown", (event) => {
      if (!(event.key in moves)) return;
      moves[event.key]();
      event.preventDefault();
    });
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const at = held.parts.nearest(event.clientX - box.left, event.clientY - box.top);
      if (at !== held.at) held.go(at);
    });
    for (const name of ["pointerleave", "blur"]) canvas.addEventListener(name, () => held.go(null));

    held.start = (parts) => {
      held.parts = parts;
      if (spec.views.length > 1) {
        controls.prepend(choice(spec.views.map((one) => one.name), (place) => {
          held.view = place;
          parts.change();
          held.go(null);
        }));
      }
      parts.change();
      redraws.push(held.draw);
      let width = 0;
      new ResizeObserver(() => {
        if (Math.abs(canvas.clientWidth - width) > 1) {
          width = canvas.clientWidth;
          held.draw();
        }
      }).observe(canvas);
      held.draw();
    };
    return held;
  }

  // Of the style sheet, in the order in which curves take them, the most distinct first.
  const STYLES = [4, 6, 5, 2, 3, 1, 0];

  // --- curves -----------------------------------------------------------------------------------

  function lineChart(figure, spec) {
    const held = frame(figure, spec, "Left and right arrow keys read its values.");
    let x = null, y = null, wide = true;
    for (const one of spec.views) {
      one.series.forEach((curve, i) => { curve.style = STYLES[i % STYLES.length]; });
    }

    const view = () => spec.views[held.view];
    const bands = () => view().bands.filter((band) => wide || band.role !== "bounds");
    const label = (i) => `${spec.x_label} = ${tickText(view().x[i])}`;

    function limits() {
      const known = [...view().series.flatMap((one) => one.y), ...bands().flatMap((band) => band.high)];
      const high = 1.05 * Math.max(...known) || 1;
      return spec.log_y ? [view().floor, 2 * high] : [0, high];
    }
    // A logarithmic axis has no place for 0: such points lie on its lower end.
    const height = (value) => y.at(spec.log_y ? Math.max(value, view().floor) : value);
    const points = (values) => values.map((value, i) => `${px(x.at(view().x[i]))} ${px(height(value))}`);
    function drawBand(band) {
      const around = points(band.high).concat(points(band.low).reverse());
      return path(`band ${band.role}`, `M${around.join("L")}Z`);
    }
    const drawCurve = (one) => path(`line s${one.style}`, `M${points(one.y).join("L")}`);
    function drawGuide(guide, box) {
      const at = x.at(guide.at), flush = at > (box.left + box.right) / 2;
      const label = { class: "halo", x: px(at + (flush ? -5 : 5)), y: box.top + 10 };
      return [path("guide", `M${px(at)} ${box.top}V${box.bottom}`),
        svg("text", { ...label, "text-anchor": flush ? "end" : "start" }, guide.label)];
    }
    function drawCursor(box) {
      const at = x.at(view().x[held.at]);
      const dots = view().series.map((one) =>
        svg("circle", { class: `dot s${one.style}`, cx: px(at), cy: px(height(one.y[held.at])), r: 4 }));
      return [path("cursor", `M${px(at)} ${box.top}V${box.bottom}`), ...dots];
    }
    function summary() {
      const ends = [0, view().x.length - 1];
      const curves = view().series.map((one) =>
        `${one.name}: ${ends.map((i) => `${shown(one.y[i])} at ${label(i)}`).join(", ")}`);
      return `${view().y_label} against ${spec.x_label}. ${curves.join("; ")}`;
    }
    function draw(width) {
      const tall = Math.round(Math.min(400, Math.max(270, width * (printing ? 0.4 : 0.5))));
      const box = { right: width - 14, top: 12, bottom: tall - 48 };
      y = scale(limits(), box.bottom, box.top, spec.log_y);
      box.left = 34 + 7 * Math.max(...y.ticks.map((tick) => tickText(tick).length));
      const places = view().x;
      x = scale([places[0], places[places.length - 1]], box.left, box.right, true);
      const grid = y.ticks.flatMap((tick) => [
        path("grid", `M${box.left} ${px(y.at(tick))}H${box.right}`),
        svg("text", { x: box.left - 7, y: px(y.at(tick)) + 4, "text-anchor": "end" }, tickText(tick)),
      ]);
      const turned = `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)`;
      const marks = [
        ...axis(x, box.bottom, spec.x_label, box.top),
        ...grid,
        path("axis", `M${box.left} ${box.top}V${box.bottom}H${box.right}`),
        svg("text", { class: "strong", transform: turned, "text-anchor": "middle" }, view().y_label),
        ...bands().map(drawBand),
        ...(view().guide ? drawGuide(view().guide, box) : []),
        ...view().series.map(drawCurve),
        ...(held.at === null ? [] : drawCursor(box)),
      ];
      return [[width, tall], summary(), marks, held.at === null ? null : [x.at(places[held.at]), 8]];
    }
    function tell(i) {
      const curves = view().series.map((one) =>
        html("li", {}, sample(lineSample(one.style)), `${one.name} `, html("strong", {}, shown(one.y[i]))));
      const ranges = bands().map((band) =>
        html("li", {}, `${band.name}: ${shown(band.low[i])} to ${shown(band.high[i])}`));
      return [label(i), [...curves, ...ranges.reverse()]];
    }
    function nearest(at) {
      const away = view().x.map((place) => Math.abs(x.at(place) - at));
      return away.indexOf(Math.min(...away));
    }
    function change() {
      const curves = view().series.map((one) => key([lineSample(one.style)], one.name));
      const ranges = bands().map((band) => key([path(`band ${band.role}`, "M1 1H35V11H1Z")], band.name));
      held.keys.replaceChildren(...curves, ...ranges);
    }
    if (spec.views.some((one) => one.bands.some((band) => band.role === "bounds"))) {
      held.controls.append(toggle("show bounds", true, (on) => {
        wide = on;
        change();
        held.go(held.at);
      }));
    }
    held.start({ draw, tell, nearest, change, size: () => view().x.length });
  }

  // --- intervals --------------------------------------------------------------------------------

  function intervalChart(figure, spec) {
    const held = frame(figure, spec, "Up and down arrow keys read its rows.");
    const ROW = 34, TOP = 8;
    const rows = () => spec.views[held.view].rows;
    const all = spec.views.flatMap((one) => one.rows);
    const wider = all.some((row) => row.wider[0] !== null);
    const text = (value) => shown(value, spec.zero);
    let wide = wider;

    function limits() {
      const ends = rows().flatMap((row) => [row.value, ...row.marks, ...row.interval, ...(wide ? row.wider : [])]);
      const known = ends.filter((value) => value !== null).concat(0);
      const low = Math.min(...known), high = Math.max(...known);
      const margin = 0.04 * (high - low) || 0.5;
      return [low < 0 ? low - margin : 0, high + margin];
    }
    function clip(label, room) {
      const most = Math.max(4, Math.floor(room / 7));
      return label.length > most ? label.slice(0, most - 1) + "\u2026" : label;
    }
    function drawRow(row, i, x, width) {
      const y = TOP + ROW * i + ROW / 2, name = health(row);
      const line = ([low, high], kind) => low === null ? null
        : path(`${kind} ${name}`, `M${px(x.at(low))} ${y}H${px(Math.max(x.at(high), x.at(low) + 0.1))}`);
      const caps = ([low, high]) => low === null ? null
        : path(`thin ${name}`, `M${px(x.at(low))} ${y - 4}v8M${px(x.at(high))} ${y - 4}v8`);
      return [
        svg("rect", { class: `row-hit${held.at === i ? " active" : ""}`, x: 0, y: TOP + ROW * i, width, height: ROW, rx: 5 }),
        svg("text", { class: "strong", x: x.start - 12, y: y + 4, "text-anchor": "end" }, clip(row.label, x.start - 12)),
        ...(wide ? [line(row.wider, "thin"), caps(row.wider)] : []),
        line(row.interval, "thick"),
        ...row.marks.map((at) => svg("circle", { class: "dot s1", cx: px(x.at(at)), cy: y, r: 2.5 })),
        row.value === null ? null : point(name, x.at(row.value), y),
      ];
    }
    const sentence = (row) => `${row.label}: ${text(row.value)}, ${row.interval.map(text).join(" to ")}`;
    function draw(width) {
      const longest = Math.max(...rows().map((row) => row.label.length));
      const left = Math.max(Math.min(longest * 7.2 + 24, width * 0.4), 40);
      const bottom = TOP + ROW * rows().length;
      const x = scale(limits(), left, width - 16, false);
      const marks = [
        ...axis(x, bottom, spec.x_label, TOP),
        path("axis", `M${px(x.start)} ${bottom}H${px(x.stop)}`),
        spec.zero ? path("zero", `M${px(x.at(0))} ${TOP}V${bottom}`) : null,
        ...rows().flatMap((row, i) => drawRow(row, i, x, width)),
      ];
      const spot = held.at === null ? null : [x.at(rows()[held.at].value ?? 0), TOP + ROW * (held.at + 1) + 2];
      return [[width, bottom + 46], rows().map(sentence).join("; "), marks, spot];
    }
    function tell(i) {
      const row = rows()[i];
      const range = (name, ends) => html("li", {}, `${name}: ${ends.map(text).join(" to ")}`);
      return [row.label, [
        html("li", {}, `${spec.zero ? "difference" : "estimate"} `, html("strong", {}, text(row.value))),
        ...(row.interval[0] === null ? [] : [range("interval", row.interval)]),
        ...(row.wider[0] === null ? [] : [range(spec.wider, row.wider)]),
      ]];
    }
    function nearest(_, y) {
      const i = Math.floor((y - TOP) / ROW);
      return i < 0 || i >= rows().length ? null : i;
    }
    if (wider) {
      held.controls.append(toggle(`show ${spec.wider}`, true, (on) => {
        wide = on;
        held.draw();
      }));
    }
    for (const name of ["sure", "unsure"]) {
      if (!all.some((row) => health(row) === name)) continue;
      held.keys.append(key([path(`thick ${name}`, "M5 6H31"), point(name, 18, 6)], spec[name]));
    }
    if (wider) held.keys.append(key([path("thin sure", "M4 6H32")], spec.wider));
    held.start({ draw, tell, nearest, change: () => {}, size: () => rows().length });
  }

  // --- tables, colours, start -------------------------------------------------------------------

  function compare(a, b, sign) {
    const [x, y] = [a.dataset.key, b.dataset.key];
    if (x !== undefined && y !== undefined) return sign * (Number(x) - Number(y));
    // What has no number stays at the end, whichever way the rest is sorted.
    if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1;
    return sign * a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = html("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort((a, b) => compare(a.cells[column], b.cells[column], up ? 1 : -1)));
      });
    });
  }
  const theme = document.querySelector(".theme");
  theme.hidden = false;
  theme.addEventListener("change", (event) => {
    document.documentElement.setAttribute("data-theme", event.target.value);
  });
  for (const figure of document.querySelectorAll("figure.interactive")) {
    const spec = JSON.parse(figure.querySelector("script").textContent);
    (spec.kind === "lines" ? lineChart : intervalChart)(figure, spec);
  }
  if (window.parent !== window) {
    // Whoever shows this page in a frame learns how high the frame should be, and nothing else.
    const tell = () => window.parent.postMessage({ height: Math.ceil(document.body.getBoundingClientRect().height) }, "*");
    tell(); // observers sleep in frames that are out of sight
    new ResizeObserver(tell).observe(document.body);
  }
})();

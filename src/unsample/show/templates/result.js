"use strict";
(() => {
  // All text goes in as text nodes and attributes, never as markup: names come from data.
  const SVG = "http://www.w3.org/2000/svg";
  const MARKS = [
    "m-3-3h6v6h-6z", "m0-4l4 7h-8z", "m0-4l4 4-4 4-4-4z", "m-3-3l6 6m0-6l-6 6",
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0", "m0 4l4-7h-8z", "m-4 0h8m-4-4v8",
  ];

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
  const px = (value) => Math.round(value * 10) / 10;

  // --- numbers ----------------------------------------------------------------------------------

  const minus = (text) => text.replace("-", "\u2212");
  function shown(value, percent, sign) {
    if (value === null) return "\u2013";
    const plus = sign && value > 0 ? "+" : "";
    if (percent) return plus + minus(Number((100 * value).toPrecision(3)).toString()) + " %";
    const size = Math.abs(value);
    const text = size > 0 && size < 1e-3 ? value.toPrecision(3) : value.toFixed(4);
    return plus + minus(text);
  }
  function tickText(value, percent) {
    if (percent) return tickText(Number((100 * value).toPrecision(4)), false) + " %";
    const size = Math.abs(value);
    if (size >= 1e3 && size < 1e8) return minus(value.toLocaleString("en"));
    if (size >= 1e8 || (size > 0 && size < 1e-3)) {
      const [digits, power] = value.toExponential(0).split("e");
      return minus((digits === "1" ? "" : digits + "\u00b7") + "10") + superscript(Number(power));
    }
    return minus(Number(value.toPrecision(4)).toString());
  }
  const superscript = (power) =>
    [...String(power)].map((c) => (c === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[c])).join("");

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
  function scale(low, high, start, stop, log) {
    const turn = log ? Math.log : (value) => value;
    const [a, b] = [turn(low), turn(high)];
    const at = (value) => {
      const clipped = log ? Math.max(value, low) : value;
      return start + ((turn(clipped) - a) / (b - a || 1)) * (stop - start);
    };
    return { at, low, high, start, stop, ticks: log ? logTicks(low, high) : linearTicks(low, high) };
  }

  // --- what both kinds of chart share -----------------------------------------------------------

  let names = 0;
  function choice(label, options, onChange) {
    const group = `choice-${names++}`;
    const box = html("fieldset", { class: "choice" }, html("legend", { class: "hidden" }, label));
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
  function sample(style, kind) {
    const box = svg("svg", { viewBox: "0 0 36 12", width: 36, height: 12, "aria-hidden": "true" });
    if (kind === "line") box.append(svg("path", { class: `line s${style}`, d: "M1 6H35" }));
    if (kind === "mark") box.append(svg("path", { class: `mark s${style}`, d: "M18 6" + MARKS[style] }));
    if (["interval", "bounds"].includes(kind)) {
      box.append(svg("path", { class: `band ${kind} ${style === null ? "fn" : "f" + style}`, d: "M1 1H35V11H1Z" }));
    }
    if (kind === "sure" || kind === "unsure") {
      box.append(svg("path", { class: `thick ${kind}`, d: "M5 6H31" }), point(kind, 18, 6));
    }
    if (["thick", "thin"].includes(kind)) box.append(svg("path", { class: `${kind} sure`, d: "M4 6H32" }));
    return box;
  }
  // The shape says it too: a full circle is sure, a square is not.
  const point = (health, x, y) =>
    svg("path", {
      class: `point ${health}`,
      d: `M${px(x)} ${px(y)}` + (health === "sure" ? "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0" : "m-3.5-3.5h7v7h-7z"),
    });

  function stage(figure, spec, hint) {
    const readout = html("div", { class: "readout", role: "status", "aria-live": "polite", hidden: true });
    const canvas = html("div", {
      class: "canvas", tabindex: 0, role: "group", "aria-roledescription": "chart",
      "aria-label": `${spec.title}. ${hint}`,
      "aria-describedby": figure.querySelector("figcaption").id,
    });
    const controls = html("div", { class: "controls" });
    const keys = html("ul", { class: "keys", "aria-label": "Legend" });
    figure.querySelector(".stage").append(controls, keys, canvas);
    return { readout, canvas, controls, keys };
  }
  function place(readout, canvas, x, y) {
    readout.hidden = false;
    const room = canvas.clientWidth - readout.offsetWidth;
    const left = x + 16 <= room ? x + 16 : x - 16 - readout.offsetWidth;
    readout.style.left = `${Math.max(0, Math.min(left, room))}px`;
    readout.style.top = `${Math.max(0, y)}px`;
  }
  function axis(marks, x, bottom, label, top, percent) {
    for (const tick of x.ticks) {
      marks.push(svg("path", { class: "grid", d: `M${px(x.at(tick))} ${top}V${bottom}` }));
      marks.push(svg("text", { x: px(x.at(tick)), y: bottom + 17, "text-anchor": "middle" }, tickText(tick, percent)));
    }
    marks.push(svg("text", { class: "strong", x: px((x.start + x.stop) / 2), y: bottom + 36, "text-anchor": "middle" }, label));
  }
  function follow(canvas, pick, clear, keys) {
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      pick(event.clientX - box.left, event.clientY - box.top);
    });
    canvas.addEventListener("pointerleave", clear);
    canvas.addEventListener("blur", clear);
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "Escape") clear();
      else if (event.key in keys) keys[event.key]();
      else return;
      event.preventDefault();
    });
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
  function widthOf(canvas) {
    if (printing) return canvas.closest(".pair") ? 330 : 680;
    return Math.max(canvas.clientWidth, 260);
  }
  function redrawOnResize(canvas, draw) {
    redraws.push(draw);
    let width = 0;
    new ResizeObserver(() => {
      if (Math.abs(canvas.clientWidth - width) > 1) {
        width = canvas.clientWidth;
        draw();
      }
    }).observe(canvas);
  }

  // --- curves -----------------------------------------------------------------------------------

  function lineChart(figure, spec) {
    const state = {
      view: 0, hidden: new Set(), roles: new Set(spec.shown), logX: spec.log_x, logY: spec.log_y, cursor: null,
    };
    const parts = stage(figure, spec, "Left and right arrow keys read its values.");
    let scales = null;

    const view = () => spec.views[state.view];
    const shownSeries = () => view().series.filter((one) => !state.hidden.has(one.name));
    // A band goes with its curve, or with none.
    const owner = (band) => view().series.find((one) => one.style === band.style);
    const shownBands = () => view().bands.filter((band) => {
      const curve = band.style === null ? null : owner(band);
      return state.roles.has(band.role) && !(curve && state.hidden.has(curve.name));
    });
    const middle = (i) => {
      if (!spec.steps) return scales.x.at(view().x[i]);
      return (scales.x.at(view().x[i]) + scales.x.at(view().x[i + 1])) / 2;
    };

    function limits() {
      const values = [];
      for (const one of shownSeries()) values.push(...one.y);
      for (const band of shownBands()) values.push(...band.low, ...band.high);
      for (const guide of view().guides) if (guide.axis === "y") values.push(guide.at);
      const known = values.filter((value) => value !== null);
      if (!state.logY) {
        const low = Math.min(0, ...known), high = Math.max(...known, low);
        return high > low ? [low, high + 0.05 * (high - low)] : [low, low + 1];
      }
      // Bands may reach down to zero: the curves say how far down a logarithmic axis goes.
      const curves = shownSeries().flatMap((one) => one.y).filter((value) => value > 0);
      const positive = known.filter((value) => value > 0);
      if (!positive.length) return [0.1, 1];
      const high = Math.max(...positive);
      const low = Math.max(Math.min(...(curves.length ? curves : positive)), high * 1e-9);
      return [low / 2, high * 1.5];
    }

    function path(xs, ys) {
      const points = [];
      ys.forEach((y, i) => {
        if (y === null || (state.logY && y <= 0 && !spec.steps)) return;
        points.push([scales.x.at(xs[i]), scales.y.at(y)]);
        if (spec.steps) points.push([scales.x.at(xs[i + 1]), scales.y.at(y)]);
      });
      return points;
    }
    const joined = (points) => points.map(([x, y]) => `${px(x)} ${px(y)}`).join("L");

    function drawBand(band) {
      const keep = band.low.map((low, i) => low !== null && band.high[i] !== null);
      const only = (side) => side.map((value, i) => (keep[i] ? Math.max(value, state.logY ? scales.y.low : -Infinity) : null));
      const top = path(view().x, only(band.high));
      const bottom = path(view().x, only(band.low)).reverse();
      if (!top.length) return null;
      const style = band.style === null ? "fn" : `f${band.style}`;
      return svg("path", { class: `band ${band.role} ${style}`, d: `M${joined(top.concat(bottom))}Z` });
    }
    function drawSeries(one) {
      const points = path(view().x, one.y);
      if (!points.length) return [];
      if (one.marked) {
        return points.map(([x, y]) => svg("path", { class: `mark s${one.style}`, d: `M${px(x)} ${px(y)}${MARKS[one.style]}` }));
      }
      return [svg("path", { class: `line s${one.style}`, d: `M${joined(points)}` })];
    }
    function drawGuide(guide, box) {
      if (guide.axis === "x") {
        const x = scales.x.at(guide.at);
        const flush = x > (box.left + box.right) / 2;
        return [
          svg("path", { class: "guide", d: `M${px(x)} ${box.top}V${box.bottom}` }),
          svg("text", { class: "halo", x: px(x + (flush ? -5 : 5)), y: box.top + 10, "text-anchor": flush ? "end" : "start" }, guide.label),
        ];
      }
      const y = scales.y.at(guide.at);
      return [
        svg("path", { class: "guide", d: `M${box.left} ${px(y)}H${box.right}` }),
        svg("text", { class: "halo", x: box.right - 4, y: px(y - 5), "text-anchor": "end" }, guide.label),
      ];
    }

    function draw() {
      const width = widthOf(parts.canvas);
      const height = Math.round(Math.min(400, Math.max(270, width * (printing ? 0.4 : 0.5))));
      const box = { right: width - 14, top: 12, bottom: height - 48 };
      const y = scale(...limits(), box.bottom, box.top, state.logY);
      const longest = Math.max(...y.ticks.map((tick) => tickText(tick, spec.percent).length));
      box.left = 34 + 7 * longest;
      const xs = view().x;
      scales = { y, x: scale(xs[0], xs[xs.length - 1], box.left, box.right, state.logX) };
      const marks = [];
      axis(marks, scales.x, box.bottom, spec.x_label, box.top, false);
      for (const tick of y.ticks) {
        const at = px(y.at(tick));
        marks.push(svg("path", { class: "grid", d: `M${box.left} ${at}H${box.right}` }));
        marks.push(svg("text", { x: box.left - 7, y: at + 4, "text-anchor": "end" }, tickText(tick, spec.percent)));
      }
      marks.push(svg("path", { class: "axis", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }));
      marks.push(svg("text", { class: "strong", transform: `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, view().y_label));
      const bands = shownBands();
      for (const role of ["bounds", "interval"]) {
        marks.push(...bands.filter((band) => band.role === role).map(drawBand));
      }
      for (const guide of view().guides) marks.push(...drawGuide(guide, box));
      for (const one of shownSeries()) marks.push(...drawSeries(one));
      if (state.cursor !== null) marks.push(...cursorMarks(box));
      const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": summary() });
      drawing.append(...marks.filter((mark) => mark !== null));
      parts.canvas.replaceChildren(drawing, parts.readout);
      if (state.cursor === null) parts.readout.hidden = true;
      else place(parts.readout, parts.canvas, middle(state.cursor), 8);
    }
    function summary() {
      const curves = shownSeries().map((one) => {
        const known = one.y.map((value, i) => [value, i]).filter(([value]) => value !== null);
        if (!known.length) return one.name;
        const [first, last] = [known[0], known[known.length - 1]];
        return `${one.name}: ${shown(first[0], spec.percent)} at ${view().labels[first[1]]}, ${shown(last[0], spec.percent)} at ${view().labels[last[1]]}`;
      });
      return `${view().y_label} against ${spec.x_label}. ${curves.join("; ")}`;
    }
    function cursorMarks(box) {
      const x = middle(state.cursor);
      const marks = [svg("path", { class: "cursor", d: `M${px(x)} ${box.top}V${box.bottom}` })];
      for (const one of shownSeries()) {
        const value = one.y[state.cursor];
        if (value === null || (state.logY && value <= 0)) continue;
        marks.push(svg("circle", { class: `dot s${one.style}`, cx: px(x), cy: px(scales.y.at(value)), r: 4 }));
      }
      return marks;
    }
    function describe(i) {
      const list = html("ul");
      const text = (value) => shown(value, spec.percent);
      const range = (band) => html("small", {}, `${band.name}: ${text(band.low[i])} to ${text(band.high[i])}`);
      const bands = shownBands().filter((band) => band.low[i] !== null).reverse();
      for (const one of shownSeries()) {
        if (one.y[i] === null) continue;
        list.append(html("li", {}, sample(one.style, one.marked ? "mark" : "line"), `${one.name} `, html("strong", {}, text(one.y[i])),
          ...bands.filter((band) => band.style === one.style).map(range)));
      }
      for (const band of bands.filter((one) => one.style === null)) list.append(html("li", {}, range(band)));
      parts.readout.replaceChildren(html("b", {}, view().labels[i]), list);
    }

    function go(i) {
      state.cursor = Math.max(0, Math.min(view().labels.length - 1, i));
      describe(state.cursor);
      draw();
    }
    function clear() {
      state.cursor = null;
      draw();
    }
    follow(parts.canvas, (x) => {
      let best = 0;
      view().labels.forEach((_, i) => {
        if (Math.abs(middle(i) - x) < Math.abs(middle(best) - x)) best = i;
      });
      if (best !== state.cursor) go(best);
    }, clear, {
      ArrowRight: () => go(state.cursor === null ? 0 : state.cursor + 1),
      ArrowLeft: () => go(state.cursor === null ? view().labels.length - 1 : state.cursor - 1),
      Home: () => go(0),
      End: () => go(view().labels.length - 1),
    });

    function drawKeys() {
      parts.keys.replaceChildren();
      for (const one of view().series) {
        const key = html("button", { class: "key", type: "button", "aria-pressed": String(!state.hidden.has(one.name)) },
          sample(one.style, one.marked ? "mark" : "line"), one.name);
        key.addEventListener("click", () => {
          if (state.hidden.has(one.name)) state.hidden.delete(one.name);
          else state.hidden.add(one.name);
          key.setAttribute("aria-pressed", String(!state.hidden.has(one.name)));
          if (state.cursor !== null) describe(state.cursor);
          draw();
        });
        parts.keys.append(html("li", {}, key));
      }
      if (new Set(view().bands.map((band) => band.style)).size === 1) {
        for (const band of view().bands) {
          if (state.roles.has(band.role)) {
            parts.keys.append(html("li", { class: "key" }, sample(band.style, band.role), band.name));
          }
        }
      }
    }
    const set = (change) => (value) => {
      change(value);
      drawKeys();
      draw();
    };
    if (spec.views.length > 1) {
      parts.controls.append(choice("Metric", spec.views.map((one) => one.name), set((i) => {
        state.view = i;
        state.cursor = null;
      })));
    }
    for (const role of ["interval", "bounds"]) {
      if (!spec.views.some((one) => one.bands.some((band) => band.role === role))) continue;
      parts.controls.append(toggle(`show ${role}`, state.roles.has(role), set((on) => {
        if (on) state.roles.add(role);
        else state.roles.delete(role);
      })));
    }
    parts.controls.append(
      toggle(`logarithmic ${spec.x_label.replace("scores in total", "cost")}`, state.logX, set((on) => { state.logX = on; })),
      toggle("logarithmic height", state.logY, set((on) => { state.logY = on; })),
    );
    drawKeys();
    redrawOnResize(parts.canvas, draw);
    draw();
  }

  // --- intervals --------------------------------------------------------------------------------

  function intervalChart(figure, spec) {
    const state = { view: 0, roles: new Set(["interval", "bounds"]), row: null };
    const parts = stage(figure, spec, "Up and down arrow keys read its rows.");
    const rows = () => spec.views[state.view].rows;
    const all = spec.views.flatMap((one) => one.rows);
    const some = (test) => all.some(test);
    const wider = some((row) => row.bounds[0] !== null);
    const ends = (row) => [...state.roles].flatMap((role) => row[role]);
    const text = (value) => shown(value, false, spec.zero);
    const ROW = 34, TOP = 8;

    function limits() {
      const values = rows().flatMap((row) => [row.value, ...row.marks, ...ends(row)]);
      const known = values.filter((value) => value !== null).concat(0);
      const low = Math.min(...known), high = Math.max(...known);
      const margin = 0.04 * (high - low) || 0.5;
      return [low < 0 ? low - margin : 0, high + margin];
    }
    function clip(label, room) {
      const most = Math.max(4, Math.floor(room / 7));
      return label.length > most ? label.slice(0, most - 1) + "\u2026" : label;
    }
    function drawRow(row, i, x, width) {
      const y = TOP + ROW * i + ROW / 2;
      const line = ([low, high], name) =>
        low === null ? null : svg("path", { class: `${name} ${row.health}`, d: `M${px(x.at(low))} ${y}H${px(Math.max(x.at(high), x.at(low) + 0.1))}` });
      const caps = ([low, high]) =>
        low === null ? null : svg("path", { class: `thin ${row.health}`, d: `M${px(x.at(low))} ${y - 4}v8M${px(x.at(high))} ${y - 4}v8` });
      return [
        svg("rect", { class: `row-hit${state.row === i ? " active" : ""}`, x: 0, y: TOP + ROW * i, width, height: ROW, rx: 5 }),
        svg("text", { class: "strong", x: x.start - 12, y: y + 4, "text-anchor": "end" }, clip(row.label, x.start - 12)),
        ...(state.roles.has("bounds") ? [line(row.bounds, "thin"), caps(row.bounds)] : []),
        line(row.interval, "thick"),
        ...row.marks.map((at) => svg("circle", { class: "dot s1", cx: px(x.at(at)), cy: y, r: 2.5 })),
        row.value === null ? null : point(row.health, x.at(row.value), y),
      ];
    }
    let geometry = null;
    function draw() {
      const width = widthOf(parts.canvas);
      const longest = Math.max(...rows().map((row) => row.label.length));
      const left = Math.min(longest * 7.2 + 24, width * 0.4);
      const bottom = TOP + ROW * rows().length;
      const x = scale(...limits(), Math.max(left, 40), width - 16, false);
      geometry = { x };
      const marks = [];
      axis(marks, x, bottom, spec.x_label, TOP, false);
      marks.push(svg("path", { class: "axis", d: `M${px(x.start)} ${bottom}H${px(x.stop)}` }));
      if (spec.zero) marks.push(svg("path", { class: "zero", d: `M${px(x.at(0))} ${TOP}V${bottom}` }));
      rows().forEach((row, i) => marks.push(...drawRow(row, i, x, width)));
      const drawing = svg("svg", { viewBox: `0 0 ${width} ${bottom + 46}`, role: "img", "aria-label": rows().map(sentence).join("; ") });
      drawing.append(...marks.filter((mark) => mark !== null));
      parts.canvas.replaceChildren(drawing, parts.readout);
      if (state.row === null) parts.readout.hidden = true;
      else {
        const row = rows()[state.row];
        place(parts.readout, parts.canvas, x.at(row.value === null ? 0 : row.value), TOP + ROW * (state.row + 1) + 2);
      }
    }
    const sentence = (row) => `${row.label}: ${text(row.value)}, interval ${text(row.interval[0])} to ${text(row.interval[1])}`;
    function go(i) {
      state.row = Math.max(0, Math.min(rows().length - 1, i));
      const row = rows()[state.row];
      const list = html("ul");
      list.append(html("li", {}, `${spec.zero ? "difference" : "estimate"} `, html("strong", {}, text(row.value))));
      for (const role of ["interval", "bounds"]) {
        if (row[role][0] !== null) list.append(html("li", {}, `${role === "bounds" ? spec.wider : role}: ${text(row[role][0])} to ${text(row[role][1])}`));
      }
      if (row.note) list.append(html("li", {}, row.note));
      parts.readout.replaceChildren(html("b", {}, row.label), list);
      draw();
    }
    function clear() {
      state.row = null;
      draw();
    }
    follow(parts.canvas, (_, y) => {
      const i = Math.floor((y - TOP) / ROW);
      if (i < 0 || i >= rows().length) clear();
      else if (i !== state.row) go(i);
    }, clear, {
      ArrowDown: () => go(state.row === null ? 0 : state.row + 1),
      ArrowUp: () => go(state.row === null ? rows().length - 1 : state.row - 1),
      Home: () => go(0),
      End: () => go(rows().length - 1),
    });

    if (spec.views.length > 1) {
      parts.controls.append(choice("Metric", spec.views.map((one) => one.name), (i) => {
        state.view = i;
        clear();
      }));
    }
    if (wider) {
      parts.controls.append(toggle(`show ${spec.wider}`, true, (on) => {
        if (on) state.roles.add("bounds");
        else state.roles.delete("bounds");
        draw();
      }));
    }
    for (const kind of ["sure", "unsure"]) {
      if (some((row) => row.health === kind)) parts.keys.append(html("li", { class: "key" }, sample(null, kind), spec[kind]));
    }
    if (wider) parts.keys.append(html("li", { class: "key" }, sample(null, "thin"), spec.wider));
    redrawOnResize(parts.canvas, draw);
    draw();
  }

  // --- tables and colours -----------------------------------------------------------------------

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = html("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        const sorted = [...body.rows].sort((a, b) => compare(a.cells[column], b.cells[column], up ? 1 : -1));
        body.append(...sorted);
      });
    });
  }
  function compare(a, b, sign) {
    const [x, y] = [a.dataset.key, b.dataset.key];
    if (x !== undefined && y !== undefined) return sign * (Number(x) - Number(y));
    // What has no number stays at the end, whichever way the rest is sorted.
    if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1;
    return sign * a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  }

  function themes(box) {
    const root = document.documentElement;
    const apply = (name) => {
      if (name === "auto") root.removeAttribute("data-theme");
      else root.setAttribute("data-theme", name);
    };
    for (const input of box.querySelectorAll("input")) {
      input.addEventListener("change", () => apply(input.value));
    }
    box.hidden = false;
  }

  function drawCharts(root) {
    for (const figure of root.querySelectorAll("figure.interactive")) {
      const spec = JSON.parse(figure.querySelector("script").textContent);
      (spec.kind === "lines" ? lineChart : intervalChart)(figure, spec);
    }
  }

  themes(document.querySelector(".theme"));
  document.querySelectorAll("table.sortable").forEach(sortable);
  drawCharts(document);
  window.drawCharts = drawCharts; // for a page that gets its charts later
  if (window.parent !== window) {
    // Whoever shows this page in a frame learns how high the frame should be, and nothing else.
    const tell = () => window.parent.postMessage({ height: Math.ceil(document.body.getBoundingClientRect().height) }, "*");
    tell(); // observers sleep in frames that are out of sight
    window.addEventListener("load", tell);
    new ResizeObserver(tell).observe(document.body);
  }
})();

"use strict";
// The script of the page of tools/graph --format html. The data are those of graph_page.cpp.

const data = JSON.parse(document.getElementById("data").textContent);
const MOST_FOUND = 300, MOST_ITEMS = 250, MOST_LABELS = 250, WIDEST_ROW = 1500;
const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999"];

const make = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
const byId = id => document.getElementById(id);
const escaped = text => String(text).replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);
const shapeOf = type => type.slice(type.indexOf("["));
const amount = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const inMiB = bytes => `${(bytes / 1048576).toLocaleString("en", { maximumFractionDigits: 3 })} MiB`;

// Nodes of gradients have a tree of scopes of their own below "gradients". Nodes that the library adds to a model for a step, such
// as the shares of the samples, are in the scope "step".
const scopeOf = (scope, origin, isGradient) => isGradient ? `gradients.${scope}` : scope || (origin.startsWith("core/") ? "step" : "");

// Returns the nodes as objects, and the tree of scopes.
function readStage(raw) {
  const text = number => data.texts[number];
  const nodes = raw.nodes.map(([op, label, scope, origin, options, types, inputs, saved, isGradient], id) => ({
    id, op: text(op), label: text(label), scope: scopeOf(text(scope), text(origin), isGradient), origin: text(origin),
    options: text(options), types: types.map(text), inputs, saved, readers: [] }));
  const root = { name: "", path: "", scopes: new Map(), nodes: [], first: 0, count: nodes.length };
  for (const node of nodes) {
    for (const [source, output] of node.inputs) nodes[source].readers.push([node.id, output]);
    let scope = root;
    node.path = [root];
    for (const name of node.scope.split(".").filter(part => part)) {
      if (!scope.scopes.has(name))
        scope.scopes.set(name, { name, path: (scope.path && scope.path + ".") + name, scopes: new Map(), nodes: [], first: node.id, count: 0 });
      scope = scope.scopes.get(name);
      scope.count++;
      node.path.push(scope);
    }
    scope.nodes.push(node);
  }
  return { name: raw.name, nodes, root, bodies: raw.bodies, updates: raw.updates };
}

const stages = data.stages.map(raw => raw.name === "program" ? Object.assign(readStage(raw), { isProgram: true }) : readStage(raw));
const programStage = stages[stages.length - 1];
const instructionOf = new Map();
data.program.instructions.forEach(([, ids], index) => ids.forEach(id => instructionOf.set(id, index)));
const memoryOf = new Map(data.program.memory.filter(([value]) => value).map(use => [use[0].join("."), use]));

let stage = stages[0], scope = stage.root, opened = new Set(), chosen = null, showsMemory = false;

function findScope(path) {
  let found = stage.root;
  for (const name of path.split(".").filter(part => part)) found = found.scopes.get(name) || found;
  return found;
}

// --- the list on the left ---

function nodeLink(node, output = 0) {
  const link = make("a", `${node.op} %${node.id}`);
  link.onclick = () => choose(node);
  const row = make("div", "", { className: node === chosen ? "row chosen" : "row" });
  row.append(link, make("span", ` ${node.label} ${node.types[output] || ""}`, { className: "dim" }));
  return row;
}

function scopeTree(of) {
  const tree = make("details");
  const summary = make("summary"), link = make("a", of.name);
  link.onclick = event => { event.preventDefault(); showScope(of); };
  summary.append(link, make("span", ` ${of.count.toLocaleString("en")}`, { className: "dim" }));
  tree.append(summary);
  tree.ontoggle = () => { if (tree.children.length === 1) tree.append(...scopeRows(of)); };
  return tree;
}

const scopeRows = of => [...[...of.scopes.values()].map(scopeTree), ...of.nodes.map(node => nodeLink(node))];

function showList() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(word => word);
  if (!words.length) {
    const all = make("a", "whole graph");
    all.onclick = () => showScope(stage.root);
    return byId("list").replaceChildren(all, ...scopeRows(stage.root));
  }
  const found = stage.nodes.filter(node => {
    const text = `%${node.id} ${node.op} ${node.label} ${node.scope} ${node.types.join(" ")}`.toLowerCase();
    return words.every(word => text.includes(word));
  });
  const note = amount(found.length, "node") + (found.length > MOST_FOUND ? `, of which the first ${MOST_FOUND} are listed` : "");
  byId("list").replaceChildren(make("p", note, { className: "dim" }), ...found.slice(0, MOST_FOUND).map(node => nodeLink(node)));
}

// --- the picture of a scope ---

// Returns the items of a scope, which are nodes and inner scopes, and the edges between them. An edge has all values that flow
// along it. `around`: also returns an item for each value that comes from outside, and for each reader outside.
function itemsOf(of, around) {
  const items = [...of.scopes.values()].map(inner => ({ scope: inner, first: inner.first }))
    .concat(of.nodes.map(node => ({ node, first: node.id }))).sort((a, b) => a.first - b.first);
  const left = Math.max(items.length - MOST_ITEMS, 0);
  items.length -= left;
  const byKey = new Map(items.map(item => [item.scope || item.node, item])), depth = of.path ? of.path.split(".").length : 0;
  const itemOf = node => node.path[depth] === of ? byKey.get(node.path[depth + 1] || node) : null;
  const edges = new Map(), outside = new Map();
  const port = (node, side) => {
    const key = `${side}${node.id}`;
    if (!outside.has(key)) outside.set(key, { node, isPort: true, side, first: side === "in" ? -1 : Infinity });
    return outside.get(key);
  };
  const connect = (from, to, node, output) => {
    if (!from || !to || from === to) return;
    if (!edges.has(from)) edges.set(from, new Map());
    if (!edges.get(from).has(to)) edges.get(from).set(to, new Map());
    edges.get(from).get(to).set(`${node.id}.${output}`, [node, output]);
  };
  for (const node of nodesIn(of)) {
    const here = itemOf(node);
    for (const [id, output] of node.inputs) {
      const source = stage.nodes[id], from = itemOf(source);
      connect(from === null && around ? port(source, "in") : from, here, source, output);
    }
    if (around)
      for (const [id, output] of node.readers) if (itemOf(stage.nodes[id]) === null) connect(here, port(stage.nodes[id], "out"), node, output);
  }
  const ports = [...outside.values()];
  return { items: [...items, ...ports.slice(0, 40)], edges, left, leftPorts: Math.max(ports.length - 40, 0) };
}

function* nodesIn(of) {
  yield* of.nodes;
  for (const inner of of.scopes.values()) yield* nodesIn(inner);
}

// Sets the row of each item to the length of the longest path to it. Edges against the order of the items do not count. An item
// without inputs is placed just above its first reader.
function setRows(items, edges) {
  items.sort((a, b) => a.first - b.first);
  items.forEach((item, index) => Object.assign(item, { index, row: 0, isSource: true, sum: 0, inputs: 0 }));
  for (const item of items)
    for (const to of (edges.get(item) || new Map()).keys())
      if (to.index > item.index) Object.assign(to, { row: Math.max(to.row, item.row + 1), isSource: false });
  for (const item of items) {
    const rows = [...(edges.get(item) || new Map()).keys()].filter(to => to.index > item.index).map(to => to.row);
    if (item.isSource && rows.length) item.row = Math.max(Math.min(...rows) - 1, 0);
  }
}

// Returns { width, height, svg } of a scope. Opened scopes are drawn inside it.
function picture(of, around) {
  const { items, edges, left, leftPorts } = itemsOf(of, around);
  for (const item of items) {
    item.inner = item.scope && opened.has(item.scope.path) ? picture(item.scope, false) : null;
    item.width = item.inner ? item.inner.width + 16 : 24 + 7.1 * Math.max(...linesOf(item).map(line => line.length), 8);
    item.height = item.inner ? item.inner.height + 32 : 38;
  }
  setRows(items, edges);
  const rows = new Map();
  for (const item of items) rows.set(item.row, [...(rows.get(item.row) || []), item]);
  let y = 8, width = 0;
  for (const [, row] of [...rows].sort((a, b) => a[0] - b[0])) {
    row.forEach(item => { item.wish = item.inputs ? item.sum / item.inputs : 0; });
    row.sort((a, b) => a.wish - b.wish || a.index - b.index);
    let x = Math.max(8, row[0].wish - row[0].width / 2), highest = 0;
    for (const item of row) {
      if (x > 8 && x + item.width > WIDEST_ROW) { x = 8; y += highest + 14; highest = 0; }
      x = Math.max(x, Math.min(item.wish - item.width / 2, WIDEST_ROW - item.width));
      Object.assign(item, { x, y });
      x += item.width + 16;
      highest = Math.max(highest, item.height);
      width = Math.max(width, x);
      for (const to of (edges.get(item) || new Map()).keys()) { to.sum += item.x + item.width / 2; to.inputs++; }
    }
    y += highest + 34;
  }
  const note = left || leftPorts ? `<text x="8" y="${y}">${amount(left, "more item")} and ${amount(leftPorts, "more neighbour")}: see the list</text>` : "";
  return { width, height: y + (note ? 8 : -20), svg: edgesSvg(items, edges) + items.map(itemSvg).join("") + note };
}

function edgesSvg(items, edges) {
  const isDrawn = new Set(items), drawn = [];
  for (const [from, targets] of edges)
    for (const [to, values] of targets) if (isDrawn.has(from) && isDrawn.has(to)) drawn.push({ from, to, values: [...values.values()] });
  const isLabelled = drawn.length <= MOST_LABELS;
  spread(drawn, "from", "to", "begin");
  spread(drawn, "to", "from", "end");
  return drawn.map(edge => edgeSvg(edge, isLabelled)).join("");
}

// Sets the x of the ends of edges, so that those at one side of an item stand beside each other in the order of their other ends.
function spread(drawn, side, other, end) {
  const bySide = new Map();
  for (const edge of drawn) bySide.set(edge[side], [...(bySide.get(edge[side]) || []), edge]);
  for (const [item, ends] of bySide)
    ends.sort((a, b) => a[other].x - b[other].x).forEach((edge, index) => Object.assign(edge, {
      [end]: item.x + item.width * (index + 1) / (ends.length + 1), [`${end}Index`]: index, [`${end}Gap`]: item.width / (ends.length + 1) }));
}

// Labels of edges to one item stand in three rows. After the third edge, an edge has a label only if it fits between those of its row.
function edgeSvg({ from, to, values, begin, end, endIndex, endGap }, isLabelled) {
  const top = from.y + from.height, bottom = to.y, bend = Math.max((bottom - top) / 2, 20);
  const shapes = values.map(([node, output]) => shapeOf(node.types[output]));
  const isSaved = values.every(([node, output]) => output >= node.types.length - node.saved);
  const label = shapes[0] + (shapes.length > 1 ? ` +${shapes.length - 1}` : "");
  const text = isLabelled && (endIndex < 3 || endGap * 3 >= label.length * 5) ? `<text x="${end + 3}" y="${bottom - 7 - endIndex % 3 * 8}">${escaped(label)}</text>` : "";
  const title = values.slice(0, 12).map(([node, output]) => `%${node.id}.${output} ${node.types[output]}`).join("\n");
  return `<g class="edge${to.row - from.row > 1 ? " long" : ""}"><path class="${isSaved ? "saved" : ""}" marker-end="url(#arrow)"`
    + ` d="M${begin} ${top}C${begin} ${top + bend} ${end} ${bottom - bend} ${end} ${bottom}"/>${text}<title>${escaped(title)}</title></g>`;
}

function linesOf(item) {
  if (item.scope) return [`${item.inner ? "− " : "+ "}${item.scope.name}`, amount(item.scope.count, "node")];
  const port = item.isPort ? (item.side === "in" ? "from " : "to ") : "";
  return [`${port}${item.node.op} %${item.node.id}`, item.node.label || item.node.types[0]];
}

function itemSvg(item) {
  const kind = item.scope ? "scope" : item.isPort ? "port" : item.node.inputs.length ? "node" : "leaf";
  const key = item.scope ? `scope ${item.scope.path}` : `node ${item.node.id}`;
  const [first, second] = linesOf(item);
  const inside = item.inner ? `<g transform="translate(8 26)">${item.inner.svg}</g>` : `<text x="10" y="31">${escaped(second)}</text>`;
  return `<g class="${kind}${item.node && item.node === chosen ? " chosen" : ""}" data-item="${escaped(key)}" transform="translate(${item.x} ${item.y})">`
    + `<rect width="${item.width}" height="${item.height}" rx="${kind === "leaf" ? 12 : 4}"/>`
    + `<text class="name" x="10" y="16">${escaped(first)}</text>${inside}</g>`;
}

function showPicture() {
  const path = make("p");
  let here = stage.root;
  for (const name of ["", ...scope.path.split(".").filter(part => part)]) {
    if (name) here = here.scopes.get(name);
    const target = here, link = make("a", name || "whole graph");
    link.onclick = () => showScope(target);
    path.append(name ? " › " : "", link);
  }
  const { width, height, svg } = picture(scope, true);
  const holder = make("div");
  holder.innerHTML = `<svg width="${Math.ceil(width + 8)}" height="${Math.ceil(height + 8)}" role="img" aria-label="picture of the scope">`
    + `<defs><marker id="arrow" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6" stroke="#888"/></marker></defs>${svg}</svg>`;
  holder.onclick = event => {
    const item = event.target.closest("[data-item]");
    if (!item) return;
    const [kind, key] = item.dataset.item.split(" ");
    if (kind === "node") return choose(stage.nodes[key]);
    opened.delete(key) || opened.add(key);
    showPicture();
  };
  const parts = [path, holder];
  if (scope === stage.root) parts.push(...changes());
  document.querySelector("main").replaceChildren(...parts);
}

// Lists the ops whose number the last pass has changed.
function changes() {
  const before = stages[stages.indexOf(stage) - 1];
  const count = of => of.nodes.reduce((sum, node) => sum.set(node.op, (sum.get(node.op) || 0) + 1), new Map());
  const now = count(stage), then = before ? count(before) : new Map();
  const ops = [...new Set([...now.keys(), ...then.keys()])].sort().filter(op => now.get(op) !== then.get(op));
  if (!ops.length) return [make("p", "The pass has changed the number of no op.")];
  return [make("h2", before ? `ops whose number differs from '${before.name}'` : "ops"),
    tableOf(before ? ["op", before.name, stage.name] : ["op", "nodes"],
      ops.map(op => [op, ...(before ? [then.get(op) || 0] : []), now.get(op) || 0]))];
}

function tableOf(head, rows) {
  const table = make("table");
  for (const row of [head, ...rows]) {
    const line = make("tr");
    line.append(...row.map(cell => cell instanceof Node ? cell : make(row === head ? "th" : "td", cell)));
    table.append(line);
  }
  return table;
}

// --- the memory plan ---

function showMemory() {
  const { memory, arena } = data.program;
  const steps = data.program.instructions.length - data.program.prologue;
  const width = Math.max(800, document.querySelector("main").clientWidth - 40), height = 420;
  const nameOf = value => value ? programStage.nodes[value[0]] : null;
  const rects = memory.map(([value, offset, bytes, first, last], index) => {
    const node = nameOf(value);
    const title = `${node ? `${node.op} %${node.id} ${node.types[value[1]]} ${node.scope}` : "workspace"}\n${inMiB(bytes)} at ${inMiB(offset)}, instructions ${first} to ${last}`;
    const colour = node ? colours[(node.op.length * 7 + node.op.charCodeAt(0)) % colours.length] : "#000";
    return `<rect class="${node && node === chosen ? "chosen" : ""}" data-use="${index}" x="${first / steps * width}" width="${Math.max((last - first + 1) / steps * width, .6)}"`
      + ` y="${height - (offset + bytes) / arena * height}" height="${Math.max(bytes / arena * height, .6)}" style="fill:${colour}"><title>${escaped(title)}</title></rect>`;
  });
  const holder = make("div"), table = make("div");
  holder.innerHTML = `<svg width="${width}" height="${height}" role="img" aria-label="memory plan"><g class="arena">${rects.join("")}</g></svg>`;
  holder.onclick = event => {
    const x = event.clientX - holder.firstChild.getBoundingClientRect().left;
    listMemory(table, Math.max(Math.min(Math.floor(x / width * steps), steps - 1), 0));
    const use = event.target.dataset.use && memory[event.target.dataset.use];
    if (use && use[0]) { chosen = nameOf(use[0]); showDetails(); }
  };
  document.querySelector("main").replaceChildren(
    make("p", `The arena has ${inMiB(arena)}. Left to right: ${amount(steps, "instruction")}. Upwards: addresses. A rectangle is a value, from the `
      + `instruction that writes it to the last one that reads it; black is a workspace. Click to list what an instruction finds in memory.`),
    holder, table);
  listMemory(table, fullest(steps));
}

function fullest(steps) {
  const change = new Array(steps + 1).fill(0);
  for (const [, , bytes, first, last] of data.program.memory) { change[first] += bytes; change[last + 1] -= bytes; }
  let sum = 0, most = 0, at = 0;
  change.forEach((bytes, index) => { sum += bytes; if (sum > most) { most = sum; at = index; } });
  return at;
}

function listMemory(table, step) {
  const uses = data.program.memory.filter(([, , , first, last]) => first <= step && step <= last).sort((a, b) => b[2] - a[2]);
  const rows = uses.slice(0, 60).map(([value, offset, bytes, first, last]) => {
    const cell = make("td");
    cell.append(value ? nodeLink(programStage.nodes[value[0]], value[1]) : "workspace");
    return [cell, inMiB(bytes), inMiB(offset), `${first} to ${last}`];
  });
  table.replaceChildren(make("h2", `instruction ${step}: ${amount(uses.length, "piece")} of memory, the largest first`),
    tableOf(["value", "bytes", "offset", "instructions"], rows));
}

// --- the details on the right ---

function showDetails() {
  const side = byId("details");
  if (!chosen) return side.replaceChildren(make("p", "Click a box to open or close a scope, or to see a node.", { className: "dim" }));
  const node = chosen, rows = [make("h2", `${node.op} %${node.id} ${node.label}`)];
  const add = (name, text) => { if (text) rows.push(make("div", `${name}: ${text}`)); };
  add("made at", node.origin);
  add("options", node.options);
  node.types.forEach((type, output) => add(`output ${output}`, type + (output >= node.types.length - node.saved ? ", saved for the gradient" : "")));
  const list = (name, links) => { if (links.length) rows.push(make("h2", name), ...links); };
  const of = showsMemory ? programStage : stage;
  list("inputs", node.inputs.map(([id, output]) => nodeLink(of.nodes[id], output)));
  list("readers", [...new Set(node.readers.map(([id]) => id))].map(id => nodeLink(of.nodes[id])));
  list("its next value", of.updates.filter(update => update[0] === node.id).map(([, next, output]) => nodeLink(of.nodes[next], output)));
  if (of === programStage && instructionOf.has(node.id)) showInstruction(node, rows);
  if (of.bodies[node.id]) rows.push(make("h2", "its graphs"), make("pre", of.bodies[node.id]));
  side.replaceChildren(...rows);
}

function showInstruction(node, rows) {
  const index = instructionOf.get(node.id), [implementation, ids] = data.program.instructions[index], { prologue } = data.program;
  rows.push(make("h2", index < prologue ? `instruction ${index} of the prologue` : `instruction ${index - prologue}`));
  rows.push(make("div", `kernel: ${data.texts[implementation]}`));
  if (ids.length > 1) rows.push(make("div", "the kernel computes:"), ...ids.map(id => nodeLink(programStage.nodes[id])));
  node.types.forEach((_, output) => {
    const use = memoryOf.get(`${node.id}.${output}`);
    if (use) rows.push(make("div", `output ${output} lies in the arena at ${inMiB(use[1])}, ${inMiB(use[2])}, from instruction ${use[3]} to ${use[4]}`));
  });
}

// --- what is shown ---

function choose(node) {
  if (showsMemory) { stage = programStage; showsMemory = false; showStages(); }
  chosen = node;
  const home = node.path[node.path.length - 1];
  if (!node.path.includes(scope) || node.path.slice(node.path.indexOf(scope) + 1).some(inner => !opened.has(inner.path))) scope = home;
  showPicture();
  showDetails();
  const box = document.querySelector("svg .chosen");
  if (box) box.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function showScope(of) {
  if (showsMemory) { stage = programStage; showsMemory = false; showStages(); }
  scope = of;
  showPicture();
}

function show(next) {
  showsMemory = !next;
  stage = next || programStage;
  scope = findScope(scope.path);
  chosen = null;
  showStages();
  showList();
  showDetails();
  showsMemory ? showMemory() : showPicture();
}

function showStages() {
  const button = (name, target, pressed) => {
    const made = make("button", name);
    made.setAttribute("aria-pressed", pressed);
    made.onclick = () => show(target);
    return made;
  };
  byId("stages").replaceChildren(...stages.flatMap(one => [button(one.name, one, !showsMemory && one === stage), " "]),
    button("memory", null, showsMemory));
  byId("note").textContent = `${amount(stage.nodes.length, "node")}; ${data.program.passes.slice(-2).join("; ")}`;
}

document.title = document.querySelector("h1").textContent = data.title;
byId("search").oninput = showList;
show(location.hash === "#memory" ? null : stages.find(one => `#${one.name}` === location.hash) || stages[0]);

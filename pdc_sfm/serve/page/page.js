"use strict";
const find = (id) => document.getElementById(id);
const STAGES = { read: "Reading the photograph", retrieve: "Looking for images of the map that show the same", match: "Matching with image", pose: "Finding the pose",
  pairs: "Keeping the photographs", extend: "Finding their place in the map", load: "Taking up the map" };
const FINISHED = new Set(["done", "failed", "dropped"]);
const PAUSE = 400; // milliseconds between two looks at a request
const MODEL_LABEL = find("model").getAttribute("aria-label");
const viewer = new Viewer(find("model"));
let map = null;
let shown = null; // the answer that is seen
let asked = 0; // questions of this page: only the latest is shown

async function ask(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...(options.headers || {}), ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401) {
    await askToken();
    return ask(path, options);
  }
  if (!response.ok) {
    const said = await response.json().catch(() => ({}));
    const detail = typeof said.detail === "string" ? said.detail : response.statusText;
    throw Object.assign(new Error(detail || `status ${response.status}`), { status: response.status, after: Number(response.headers.get("Retry-After")) });
  }
  return response;
}

function askToken() {
  const dialog = find("token-dialog");
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => { sessionStorage.setItem("token", find("token").value); resolve(); }, { once: true });
    if (!dialog.open) dialog.showModal();
  });
}

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const round = (value, digits = 2) => Number(value).toFixed(digits);

async function loadMap() {
  map = await (await ask("map")).json();
  const content = await (await ask(`map/points?most=${innerWidth < 860 ? 40000 : 120000}`)).arrayBuffer();
  const count = content.byteLength / 15;
  viewer.show(map, new Float32Array(content, 0, 3 * count), new Uint8Array(content, 12 * count));
  find("map-note").textContent = `${map.name}: ${map.images.length} images, ${map.points.toLocaleString("en")} points`;
}

function working(text, part) {
  find("work").hidden = text === null;
  if (text === null) return;
  find("stage").textContent = text;
  if (part === null) find("bar").removeAttribute("value"); else find("bar").value = part;
}

function problem(text) {
  find("problem").hidden = !text;
  find("problem").textContent = text || "";
}

async function send(path, options, mine) {
  for (;;) {
    try {
      return await (await ask(path, { method: "POST", ...options })).json();
    } catch (error) {
      if (error.status !== 503 || mine !== asked) throw error;
      working(`The map is busy: again in ${error.after || 2} s`, null);
      await sleep(1000 * (error.after || 2));
    }
  }
}

// Sends a question, shows how far it is, and shows its answer if no other was asked since.
async function question(path, options, show) {
  const mine = ++asked;
  problem("");
  find("answer").hidden = find("added").hidden = true;
  working("Sending", null);
  try {
    let request = await send(path, options, mine);
    while (!FINISHED.has(request.state)) {
      await sleep(PAUSE);
      request = await (await ask(`requests/${request.id}`)).json();
      if (mine === asked) progress(request);
    }
    if (mine !== asked) return;
    working(null);
    if (request.state !== "done") problem(request.error || "The request was not answered.");
    else await show(request);
  } catch (error) {
    if (mine === asked) { working(null); problem(error.message); }
  }
  await loadList().catch(() => {});
}

const named = (file) => encodeURIComponent(file.name.slice(0, 200));

function localize(file) {
  const options = { body: file, headers: { "Content-Type": "application/octet-stream" } };
  return question(`localize?wait=false&name=${named(file)}`, options, (request) => showAnswer(request, file));
}

function addToMap(files) {
  const body = new FormData();
  for (const file of files) body.append("image", file);
  return question(`images?name=${named(files[0])}`, { body }, async ({ answer }) => {
    await loadMap();
    const left = answer.left_out.length ? `, ${answer.left_out.length} found no place in it` : "";
    find("added").textContent = `${answer.added.length} added to the map${left}. It has ${answer.images} images now.`;
    find("added").hidden = false;
  });
}

function progress(request) {
  if (request.state === "queued") return working(request.ahead ? `Waiting: ${request.ahead} before this one` : "Waiting", null);
  const { stage, done, total } = request;
  const counted = total > 1 ? ` (${done + 1} of ${total})` : "";
  const order = request.kind === "add" ? ["pairs", "match", "extend", "load"] : ["read", "retrieve", "match", "pose"];
  const place = Math.max(0, order.indexOf(stage));
  working(`${STAGES[stage] || "Working"}${counted} …`, (place + (total ? done / total : 0)) / order.length);
}

const percent = (probability) => `${Math.floor(100 * probability)} %`; // never rounded up to sure

async function showAnswer(request, file) {
  const answer = shown = request.answer;
  const photo = file ? await createImageBitmap(file, { imageOrientation: "none" }).catch(() => null) : null; // pixels as they are stored
  if (shown !== answer) return; // another was asked for meanwhile
  find("answer").hidden = false;
  const unit = map.metres ? "m" : "units";
  const figures = { Photograph: request.name || "–" };
  find("sure").hidden = find("matches").hidden = find("matches-note").hidden = !answer.localized;
  find("doubt").hidden = !answer.doubt;
  if (answer.localized) {
    const { pose } = answer, [x, y, z] = pose.position;
    const place = `${round(x)}, ${round(y)}, ${round(z)}`;
    const onEarth = pose.latitude !== null && `${round(pose.latitude, 6)}, ${round(pose.longitude, 6)}`;
    find("said").textContent = `Taken at ${onEarth || place}`;
    if (onEarth) figures["In the map"] = `${place} ${unit}`;
    find("probability").value = answer.probability;
    const limit = map.metres ? "0.25 m and 2°" : "a sixtieth of the depth and 2°";
    find("probability-text").textContent = `Right with probability ${percent(answer.probability)}: within ${limit}`;
    find("doubt").textContent = answer.doubt ? `Doubtful: ${answer.doubt}` : "";
    figures["Standard deviation"] = `${round(pose.sigma_position, 3)} ${unit}, ${round(pose.sigma_degrees)}°`;
    figures.Inliers = `${answer.inliers.toLocaleString("en")} in ${answer.images.filter((image) => image.inliers).length} images`;
    viewer.showPose(answer, photo);
    find("view-pose").disabled = false;
    find("model").setAttribute("aria-label", `${MODEL_LABEL} The photograph was taken at ${place}.`);
  } else find("said").textContent = `Not found in this map: ${answer.reason}`;
  if (answer.camera) figures.Camera = `${answer.camera.model}, ${answer.camera.width} × ${answer.camera.height}, of ${answer.camera.source}`;
  figures.Images = answer.images.map((image) => image.name).join(", ") || "none";
  const spent = Object.entries(answer.seconds);
  figures.Time = `${round(spent.reduce((sum, [, seconds]) => sum + seconds, 0), 1)} s (${spent.map(([stage, seconds]) => `${stage} ${round(seconds, 1)}`).join(", ")})`;
  find("figures").replaceChildren(...Object.entries(figures).flatMap(([key, value]) => {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = key;
    text.textContent = value;
    return [term, text];
  }));
  find("answer").focus({ preventScroll: innerWidth >= 860 });
  if (answer.localized) await drawMatches(answer, photo).catch(() => { find("matches").hidden = true; });
}

async function drawMatches(answer, left) {
  const image = map.images.find((one) => one.number === answer.shown_image);
  const canvas = find("matches");
  canvas.hidden = !left || !image;
  find("matches-note").textContent = canvas.hidden ? "" : `The photograph, and ${answer.shown.length} of its inliers in ${image.name}`;
  if (canvas.hidden) return;
  const right = await ask(`map/images/${image.number}?side=640`).then((response) => response.blob()).then((blob) => createImageBitmap(blob));
  if (shown !== answer) return;
  const height = 300, gap = 6;
  const width0 = Math.round(left.width * height / left.height), width1 = Math.round(right.width * height / right.height);
  canvas.width = width0 + gap + width1;
  canvas.height = height;
  const context = canvas.getContext("2d");
  context.drawImage(left, 0, 0, width0, height);
  context.drawImage(right, width0 + gap, 0, width1, height);
  const scale0 = height / answer.camera.height, scale1 = height / image.height;
  answer.shown.forEach(([x0, y0, x1, y1], k) => {
    context.strokeStyle = `hsl(${(k * 47) % 360} 85% 55% / 0.6)`;
    context.beginPath();
    context.moveTo(x0 * scale0, y0 * scale0);
    context.lineTo(width0 + gap + x1 * scale1, y1 * scale1);
    context.stroke();
  });
}

async function loadList() {
  const found = await (await ask("requests?most=30")).json();
  if (!found.length) return;
  find("list").replaceChildren(...found.map((request) => {
    const item = document.createElement("li"), button = document.createElement("button"), note = document.createElement("small");
    const said = request.answer && request.kind === "localize"
      ? request.answer.localized ? `right with probability ${percent(request.answer.probability)}` : "not found"
      : request.error || request.state;
    button.type = "button";
    button.textContent = request.name || request.kind;
    note.textContent = `${new Date(1000 * request.received).toLocaleString()}: ${said}`;
    button.append(note);
    button.disabled = !(request.answer && request.kind === "localize");
    button.addEventListener("click", () => { asked++; working(null); problem(""); showAnswer(request, null); });
    item.append(button);
    return item;
  }));
}

function choose(input) {
  input.addEventListener("change", () => { if (input.files[0]) localize(input.files[0]); input.value = ""; });
}

choose(find("file"));
choose(find("take"));
find("add").addEventListener("change", () => { const files = [...find("add").files]; find("add").value = ""; if (files.length) addToMap(files); });
const drop = document.body;
for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); find("drop").classList.add("over"); });
for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, (event) => { event.preventDefault(); find("drop").classList.remove("over"); });
drop.addEventListener("drop", (event) => {
  const [file] = event.dataTransfer.files;
  if (file) localize(file);
});
find("view-all").addEventListener("click", () => viewer.fly(viewer.home, 900));
find("view-pose").addEventListener("click", () => viewer.poseView && viewer.fly(viewer.poseView, 900));
find("copy").addEventListener("click", async () => {
  const done = await navigator.clipboard.writeText(JSON.stringify(shown, null, 1)).then(() => "Copied", () => "The browser does not allow it");
  find("copy").textContent = done;
  setTimeout(() => { find("copy").textContent = "Copy as JSON"; }, 2000);
});
find("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = localStorage.theme = now === "dark" ? "light" : "dark";
  viewer.draw();
});
if (localStorage.theme) document.documentElement.dataset.theme = localStorage.theme;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => viewer.draw());
loadMap().catch((error) => { find("map-note").textContent = `The map cannot be shown: ${error.message}`; });
loadList().catch(() => {});
fetch("healthz").then((response) => response.json()).then((told) => { find("adding").hidden = !told.additions; }).catch(() => {});

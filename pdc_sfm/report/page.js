"use strict";
(() => {
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("pdc-sfm-theme"); } catch { return null; } };
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const known = stored();
  if (known) root.dataset.theme = known;
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("pdc-sfm-theme", root.dataset.theme); } catch { /* a file may have no storage */ }
    drawModel();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawModel());

  const dialog = document.getElementById("large");
  document.addEventListener("click", (event) => {
    if (event.target.matches("img.zoom")) {
      dialog.firstElementChild.src = event.target.src;
      dialog.showModal();
    } else if (event.target.closest("dialog")) {
      dialog.close();
    }
  });

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const source = document.getElementById("model-data");
  const view = document.getElementById("model-view");
  let camera = null;
  let content = null;

  function read() {
    const data = JSON.parse(source.textContent);
    const xyz = new Float32Array(bytes(data.points).buffer);
    const rgb = bytes(data.colors);
    const count = xyz.length / 3;
    const axis = (k) => Float32Array.from({ length: count }, (_, i) => xyz[3 * i + k]);
    const colors = Array.from({ length: count }, (_, i) => `rgb(${rgb[3 * i]},${rgb[3 * i + 1]},${rgb[3 * i + 2]})`);
    return { data, x: axis(0), y: axis(1), z: axis(2), colors };
  }

  function traces(shades) {
    const result = [{
      type: "scatter3d", mode: "markers", name: "points", x: content.x, y: content.y, z: content.z, hoverinfo: "skip",
      marker: { size: 1.6, color: content.colors, line: { width: 0 } },
    }];
    content.data.cameras.forEach((group, k) => {
      const shade = shades[k % shades.length];
      const at = (list, axis) => list.map((p) => p[axis]);
      result.push({
        type: "scatter3d", mode: "lines", name: group.label, legendgroup: group.label, hoverinfo: "skip",
        x: at(group.lines, 0), y: at(group.lines, 1), z: at(group.lines, 2), line: { color: shade, width: 3 },
      }, {
        type: "scatter3d", mode: "markers", legendgroup: group.label, showlegend: false, text: group.names,
        hovertemplate: "%{text}<extra></extra>", marker: { size: 3, color: shade },
        x: at(group.centers, 0), y: at(group.centers, 1), z: at(group.centers, 2),
      });
    });
    return result;
  }

  function webgl() {
    try { return Boolean(document.createElement("canvas").getContext("webgl")); } catch { return false; }
  }

  // plotly's units: 1 is the radius of the frame, 0 the middle of all that is drawn; what is far off is drawn too
  function firstView() {
    const { frame, range } = content.data;
    const center = range.map(([low, high], k) => (frame.center[k] - (low + high) / 2) / frame.radius);
    const far = 1.75 * Math.max(1, 1.15 * view.clientHeight / view.clientWidth);  // a narrow view needs more distance
    const eye = [-0.17, -0.86, 0.48].map((part, k) => center[k] + far * part);
    const named = ([x, y, z]) => ({ x, y, z });
    return { eye: named(eye), center: named(center), up: named([0, 0, 1]) };
  }

  function drawModel() {
    if (!source || typeof Plotly === "undefined" || !webgl()) return;  // the still picture stays
    if (!content) {
      content = read();
      camera = firstView();
    }
    const style = getComputedStyle(root);
    const color = (name) => style.getPropertyValue(name).trim();
    const ranges = content.data.range;
    const axis = (k) => ({
      range: ranges[k], visible: false, showspikes: false,
    });
    const layout = {
      margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: color("--card"), uirevision: "keep",
      font: { color: color("--ink") }, legend: { x: 0, y: 1, bgcolor: "rgba(0,0,0,0)", itemsizing: "constant" },
      scene: {
        xaxis: axis(0), yaxis: axis(1), zaxis: axis(2), aspectmode: "manual", dragmode: "turntable", camera,
        aspectratio: Object.fromEntries(["x", "y", "z"].map((n, k) => [n, (ranges[k][1] - ranges[k][0]) / content.data.frame.radius])),
      },
    };
    view.querySelector(".still")?.remove();
    Plotly.react(view, traces([color("--c2"), color("--c3"), color("--c1")]), layout,
      { responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: true })
      .then(() => { view.dataset.drawn = "yes"; });
    if (!view.dataset.listens) {
      view.dataset.listens = "yes";
      view.on("plotly_relayout", (change) => { if (change["scene.camera"]) camera = change["scene.camera"]; });
    }
  }
  setTimeout(drawModel, 30);  // the page is readable first
})();

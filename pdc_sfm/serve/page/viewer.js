"use strict";
// A map of points and cameras to turn around, drawn into the pixels of a canvas: no library, no WebGL.
class Viewer {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.points = new Float32Array(0);
    this.colors = new Uint8Array(0);
    this.cameras = [];
    this.pose = null;
    this.photo = null; // of the pose, to be hung into its frustum
    this.home = { target: [0, 0, 0], azimuth: 0.6, elevation: 0.5, distance: 3 };
    this.view = { ...this.home, target: [...this.home.target] };
    this.radius = 1;
    new ResizeObserver(() => this.draw()).observe(canvas);
    this.listen();
  }

  show(map, points, colors) {
    this.upright = map.upright;
    this.radius = map.radius;
    this.points = new Float32Array(points.length);
    for (let i = 0; i < points.length; i += 3) this.points.set(this.turn(points[i], points[i + 1], points[i + 2]), i);
    this.colors = colors;
    this.cameras = map.images.map((image) => this.frustum(image.cam_from_world, image.focal, image.height / image.width, map.radius * 0.03));
    this.home = { target: map.center, azimuth: 0.6, elevation: 0.6, distance: map.radius * 2.3 }; // the sphere of that radius, and some of what lies around it
    this.fly(this.home, 0);
  }

  turn(x, y, z) {
    return this.upright.map((row) => row[0] * x + row[1] * y + row[2] * z);
  }

  // the tip of a camera and the corners of its picture, in the upright frame
  frustum(pose, focal, aspect, size) {
    const width = size / focal / 2;
    const corners = [[0, 0, 0], [-width, -width * aspect, size], [width, -width * aspect, size], [width, width * aspect, size], [-width, width * aspect, size]];
    return corners.map((corner) => {
      const local = corner.map((value, row) => value - pose[row][3]);
      return this.turn(...[0, 1, 2].map((k) => pose[0][k] * local[0] + pose[1][k] * local[1] + pose[2][k] * local[2]));
    });
  }

  showPose(answer, photo = null) {
    const camera = answer.camera;
    this.photo = photo;
    const focal = camera.params[0] / camera.width;
    this.pose = this.frustum(answer.pose.cam_from_world, focal, camera.height / camera.width, this.radius * 0.09);
    const forward = this.turn(...answer.pose.cam_from_world[2].slice(0, 3));
    const [tip] = this.pose;
    const ahead = this.radius * 0.35;
    this.poseView = {
      target: tip.map((value, k) => value + forward[k] * ahead),
      azimuth: Math.atan2(-forward[0], -forward[1]),
      elevation: Math.min(1.2, Math.max(-0.1, Math.asin(Math.max(-1, Math.min(1, -forward[2]))) + 0.3)),
      distance: ahead * 2.2,
    };
    this.fly(this.poseView, 1400);
  }

  fly(to, milliseconds) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const from = { ...this.view, target: [...this.view.target] };
    const turn = ((to.azimuth - from.azimuth + Math.PI) % (2 * Math.PI) + 2 * Math.PI) % (2 * Math.PI) - Math.PI;
    const begun = performance.now();
    const step = (now) => {
      const part = still || !milliseconds ? 1 : Math.min(1, (now - begun) / milliseconds);
      const s = part * part * (3 - 2 * part);
      const mix = (a, b) => a + (b - a) * s;
      this.view = {
        target: from.target.map((value, k) => mix(value, to.target[k])),
        azimuth: from.azimuth + turn * s,
        elevation: mix(from.elevation, to.elevation),
        distance: Math.exp(mix(Math.log(from.distance), Math.log(to.distance))),
      };
      this.draw();
      if (part < 1) this.flying = requestAnimationFrame(step);
    };
    cancelAnimationFrame(this.flying);
    step(begun);
  }

  // rows of the viewer's own camera: right, up, back
  axes() {
    const { azimuth: a, elevation: e } = this.view;
    const back = [Math.sin(a) * Math.cos(e), Math.cos(a) * Math.cos(e), Math.sin(e)];
    const right = [-Math.cos(a), Math.sin(a), 0];
    const up = [right[1] * back[2] - right[2] * back[1], right[2] * back[0] - right[0] * back[2], right[0] * back[1] - right[1] * back[0]].map((value) => -value);
    return [right, up, back];
  }

  draw() {
    cancelAnimationFrame(this.drawing);
    this.drawing = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const { canvas, context } = this;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const [right, up, back] = this.axes();
    const { target, distance } = this.view;
    const eye = target.map((value, k) => value + back[k] * distance);
    const focal = Math.min(width, height) * 0.9, near = distance * 0.02;
    const sky = getComputedStyle(canvas).backgroundColor.match(/\d+/g).map(Number);
    const image = context.createImageData(width, height), words = new Uint32Array(image.data.buffer);
    words.fill(0xff000000 | (sky[2] << 16) | (sky[1] << 8) | sky[0]);
    const depths = new Float32Array(width * height).fill(Infinity);
    // few points are drawn larger, so that walls close
    const { points, colors } = this, grain = focal * this.radius * Math.max(0.005, Math.min(0.012, 1.3 / Math.sqrt(points.length || 1)));
    for (let i = 0; i < points.length; i += 3) {
      const x = points[i] - eye[0], y = points[i + 1] - eye[1], z = points[i + 2] - eye[2];
      const depth = -(back[0] * x + back[1] * y + back[2] * z);
      if (depth < near) continue;
      const size = Math.max(ratio > 1.4 ? 2 : 1, Math.min(6, Math.round(grain / depth)));
      const u = Math.round(width / 2 + focal * (right[0] * x + right[1] * y + right[2] * z) / depth);
      const v = Math.round(height / 2 - focal * (up[0] * x + up[1] * y + up[2] * z) / depth);
      if (u < 0 || v < 0 || u >= width - size || v >= height - size) continue;
      const word = 0xff000000 | (colors[i + 2] << 16) | (colors[i + 1] << 8) | colors[i];
      for (let dy = 0; dy < size; dy++) {
        for (let dx = 0; dx < size; dx++) {
          const place = (v + dy) * width + u + dx;
          if (depth < depths[place]) { depths[place] = depth; words[place] = word; }
        }
      }
    }
    context.putImageData(image, 0, 0);
    const project = (point) => {
      const [x, y, z] = point.map((value, k) => value - eye[k]);
      const depth = -(back[0] * x + back[1] * y + back[2] * z);
      if (depth < near) return null;
      return [width / 2 + focal * (right[0] * x + right[1] * y + right[2] * z) / depth, height / 2 - focal * (up[0] * x + up[1] * y + up[2] * z) / depth];
    };
    const style = getComputedStyle(document.documentElement);
    for (const camera of this.cameras) this.wire(camera.map(project), style.getPropertyValue("--soft"), ratio);
    if (!this.pose) return;
    if (this.photo) this.hang(this.photo, this.pose.slice(1), project);
    this.wire(this.pose.map(project), style.getPropertyValue("--pose"), 3 * ratio, !this.photo);
  }

  // a picture between four corners of space, in triangles small enough to look as perspective has them
  hang(photo, [a, b, c, d], project, parts = 6) {
    const { context } = this;
    const at = (i, j) => a.map((_, k) => {
      const s = i / parts, t = j / parts;
      return (1 - t) * ((1 - s) * a[k] + s * b[k]) + t * ((1 - s) * d[k] + s * c[k]);
    });
    const corners = Array.from({ length: (parts + 1) ** 2 }, (_, n) => project(at(n % (parts + 1), Math.floor(n / (parts + 1)))));
    if (corners.includes(null)) return;
    const step = [photo.width / parts, photo.height / parts];
    for (let j = 0; j < parts; j++) {
      for (let i = 0; i < parts; i++) {
        const first = j * (parts + 1) + i, [p, q, r, o] = [first, first + 1, first + parts + 2, first + parts + 1].map((n) => corners[n]);
        for (const [x, y, z, right, down] of [[p, q, r, [q, p], [r, q]], [p, r, o, [r, o], [o, p]]]) {
          context.save();
          context.beginPath();
          // half a pixel wider than itself: no seams
          const middle = [0, 1].map((k) => (x[k] + y[k] + z[k]) / 3);
          for (const tip of [x, y, z]) context.lineTo(...tip.map((value, k) => value + 0.6 * Math.sign(value - middle[k])));
          context.clip();
          const [ux, uy] = [0, 1].map((k) => (right[0][k] - right[1][k]) / step[0]), [vx, vy] = [0, 1].map((k) => (down[0][k] - down[1][k]) / step[1]);
          context.transform(ux, uy, vx, vy, p[0] - ux * i * step[0] - vx * j * step[1], p[1] - uy * i * step[0] - vy * j * step[1]);
          context.drawImage(photo, 0, 0);
          context.restore();
        }
      }
    }
  }

  wire(tips, color, line, filled = false) {
    if (tips.includes(null)) return;
    const { context } = this, [tip, ...corners] = tips;
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = line;
    context.lineJoin = "round";
    context.beginPath();
    corners.forEach((corner, k) => {
      const next = corners[(k + 1) % 4];
      context.moveTo(...tip); context.lineTo(...corner); context.lineTo(...next);
    });
    context.stroke();
    if (filled) {
      context.globalAlpha = 0.35;
      context.beginPath();
      corners.forEach((corner) => context.lineTo(...corner));
      context.fill();
      context.globalAlpha = 1;
    }
    if (line > 2) { // the one that was asked for
      context.beginPath();
      context.arc(...tip, 2 * line, 0, 7);
      context.fill();
    }
  }

  listen() {
    const { canvas } = this, fingers = new Map();
    const move = (dx, dy, shift) => {
      const { view } = this;
      if (shift) {
        const [right, up] = this.axes(), step = view.distance / canvas.clientHeight;
        view.target = view.target.map((value, k) => value - step * (right[k] * dx - up[k] * dy));
      } else {
        view.azimuth += dx * 0.008;
        view.elevation = Math.min(1.55, Math.max(-1.55, view.elevation + dy * 0.008));
      }
      this.draw();
    };
    const zoom = (factor) => { this.view.distance = Math.min(this.radius * 50, Math.max(this.radius * 0.01, this.view.distance * factor)); this.draw(); };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); fingers.set(event.pointerId, event); cancelAnimationFrame(this.flying); });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
      if (fingers.size === 2) {
        const [other] = [...fingers.values()].filter((finger) => finger.pointerId !== event.pointerId);
        const span = (finger) => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY) || 1;
        zoom(span(before) / span(event));
        move(dx / 2, dy / 2, true);
      } else move(dx, dy, event.shiftKey || event.buttons === 2);
      fingers.set(event.pointerId, event);
    });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(event.deltaY * 0.0015)); }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [-20, 0], ArrowRight: [20, 0], ArrowUp: [0, -20], ArrowDown: [0, 20] };
      if (steps[event.key]) move(...steps[event.key], event.shiftKey);
      else if (event.key === "+" || event.key === "=") zoom(0.85);
      else if (event.key === "-") zoom(1 / 0.85);
      else if (event.key === "Home") this.fly(this.home, 600);
      else return;
      event.preventDefault();
    });
  }
}

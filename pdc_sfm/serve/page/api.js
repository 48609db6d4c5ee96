"use strict";
const make = (tag, text, ...children) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};
document.getElementById("curl").textContent = `curl --data-binary @photo.jpg ${location.origin}/localize`;
const token = sessionStorage.getItem("token");
fetch("openapi.json", token ? { headers: { Authorization: `Bearer ${token}` } } : {}).then((response) => response.json()).then((api) => {
  for (const [path, verbs] of Object.entries(api.paths)) {
    for (const [verb, operation] of Object.entries(verbs)) {
      const rows = (operation.parameters || []).flatMap((one) => [make("dt", one.name), make("dd", [one.description, one.schema && one.schema.default !== undefined ? `(${one.schema.default})` : ""].filter(Boolean).join(" "))]);
      const schema = operation.responses["200"]?.content?.["application/json"]?.schema?.$ref;
      const fields = schema ? Object.keys(api.components.schemas[schema.split("/").pop()].properties) : [];
      document.getElementById("paths").append(make("section", "",
        make("h2", `${verb.toUpperCase()} ${path}`), make("p", operation.description || operation.summary),
        make("dl", "", ...rows), ...(fields.length ? [make("p", `Answer: ${fields.join(", ")}`)] : [])));
    }
  }
}).catch((error) => document.getElementById("paths").append(make("p", `openapi.json cannot be read: ${error.message}`)));

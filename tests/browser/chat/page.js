// What a program for chats does with an MCP App: shows it in a frame that may do nothing by itself, hands it the
// tool's result, and passes its calls on to the server.

let frame;
const context = []; // what the app has told the assistant

function post(message) {
  frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

async function answer({ method, params }) {
  if (method === "ui/initialize") {
    return {
      protocolVersion: params.protocolVersion,
      hostInfo: { name: "chat", version: "1" },
      hostCapabilities: { serverTools: {}, updateModelContext: { structuredContent: {}, text: {} } },
      hostContext: { theme: window.shown.theme },
    };
  }
  if (method === "tools/call") return window.call(params.name, params.arguments ?? {});
  if (method === "ui/update-model-context") context.push(params);
  return {};
}

addEventListener("message", async ({ source, data }) => {
  if (source !== frame?.contentWindow) return;
  if (data.method === "ui/notifications/initialized") {
    post({ method: "ui/notifications/tool-input", params: { arguments: window.shown.given } });
    post({ method: "ui/notifications/tool-result", params: window.shown.result });
  } else if (data.method === "ui/notifications/size-changed") {
    frame.style.height = `${data.params.height}px`;
  } else if (data.id !== undefined && data.method) {
    post({ id: data.id, result: await answer(data) });
  }
});

window.show = (shown) => {
  window.shown = shown;
  frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.srcdoc = shown.html;
  document.body.append(frame);
};
window.told = () => context.at(-1)?.structuredContent?.state ?? context.at(-1) ?? null;

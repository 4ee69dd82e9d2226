// Requests to kymod's HTTP API (docs/web.md), with the token.

export class Client {
  /**
   * @param {string} token
   * @param {string} [origin] of kymod, if it is not that of the page
   */
  constructor(token, origin = "") {
    this.token = token;
    this.origin = origin;
  }

  /**
   * @param {string} path
   * @param {Record<string, string | number>} [parameters]
   * @param {RequestInit} [options]
   */
  async call(path, parameters = {}, options = {}) {
    const words = Object.entries(parameters).map(([name, value]) => [name, String(value)]);
    const query = new URLSearchParams(words).toString();
    const reply = await fetch(this.origin + path + (query ? "?" + query : ""), {
      ...options, headers: { Authorization: "Bearer " + this.token }, cache: "no-store" });
    if (reply.ok) return reply;
    let message = `${reply.status} ${reply.statusText}`;
    try {
      message = (await reply.json()).error.message;
    } catch { /* not ours */ }
    throw new Error(message);
  }

  /**
   * @param {string} path
   * @param {Record<string, string | number>} [parameters]
   */
  async get(path, parameters) {
    return (await this.call(path, parameters)).json();
  }

  /**
   * @param {string} path
   * @param {Record<string, string | number>} [parameters]
   */
  async post(path, parameters) {
    return (await this.call(path, parameters, { method: "POST" })).json();
  }

  /**
   * Reads server-sent events until `each` returns false. EventSource cannot send the token.
   * @param {string} path
   * @param {Record<string, string | number>} parameters
   * @param {AbortSignal} signal
   * @param {(event: string, data: any) => boolean} each
   */
  async listen(path, parameters, signal, each) {
    const reply = await this.call(path, parameters, { signal });
    const body = /** @type {ReadableStream<BufferSource>} */ (reply.body);
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const [event, data] = text.slice(0, end).split("\n");
          text = text.slice(end + 2);
          if (!each(event.slice("event: ".length), JSON.parse(data.slice("data: ".length)))) return;
        }
      }
    } finally {
      reader.cancel().catch(() => {}); // the stream has ended, or the events are no longer needed
    }
  }
}

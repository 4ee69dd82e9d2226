// The page that kymod serves: live charts, the running dumps and restores, and what kymod stores.
// Names are set as text, never as markup.
import { byId } from "./dom.js";
import { list } from "./live/columns.js";
import { wireRecorder } from "./live/recorder.js";
import { connect } from "./live/stream.js";
import { wireView } from "./live/view.js";
import { wireProfiles } from "./profiles/view.js";
import { wireStored } from "./stored.js";

wireView();
// A new stream sends everything; a status that was set here would hide the change from it.
wireRecorder(connect);
byId("detail").addEventListener("change", connect);
byId("filter").addEventListener("input", () => list(connect));
connect();
wireStored();
wireProfiles();

import { StrictMode, useState, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";
import { networks } from "./api.js";
import { CreateForm } from "./create.jsx";
import { EditDialog } from "./edit.jsx";
import { NetworkTable } from "./table.jsx";

const statuses = {
  loading: "Loading",
  live: "Live",
  behind: "Connecting again",
  failed: "Stopped",
  closed: "Stopped",
};

function Page() {
  const { resources, status, error, hasNextPage } = useSyncExternalStore(networks.subscribe, networks.getSnapshot);
  const [edited, setEdited] = useState(null);
  const [notice, setNotice] = useState("");
  return (
    <>
      <header>
        <h1>Networks</h1>
        <p className={`status ${status}`} role="status">{statuses[status]}</p>
        <p className="count">{resources.length}{hasNextPage ? " of more" : ""}</p>
      </header>
      <main>
        {status === "failed" && <p className="problem" role="alert">The list has ended: {error.message}. Load the page again.</p>}
        <CreateForm onDone={setNotice} />
        <p className="notice" role="status">{notice}</p>
        <NetworkTable networks={resources} loading={status === "loading"} onEdit={setEdited} onNotice={setNotice} />
        {hasNextPage && <button type="button" className="more" onClick={() => networks.more()}>More</button>}
      </main>
      {edited && <EditDialog key={edited.id} network={edited} current={resources.find(({ id }) => id === edited.id)} onClose={(text) => (setEdited(null), setNotice(text))} />}
    </>
  );
}

createRoot(document.getElementById("root")).render(<StrictMode><Page /></StrictMode>);

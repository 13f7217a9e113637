import { resolve, saveMerged } from "@sluicegw/client";
import { useEffect, useId, useRef, useState } from "react";
import { editable, patchNetwork, readNetwork } from "./api.js";

const labels = { description: "Description", mtu: "MTU", adminStateUp: "Up" };

function show(value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  return value ?? "none";
}

// EditDialog edits the network as it was when the dialog was opened. current is what it is now, undefined if it is gone.
export function EditDialog({ network, current, onClose }) {
  const dialog = useRef(null);
  const title = useId();
  const [values, setValues] = useState(editable(network));
  const [conflict, setConflict] = useState(null); // {merge, settle}
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const { name } = network.metadata;

  useEffect(() => {
    dialog.current.showModal();
  }, []);

  function set(field, value) {
    setValues((before) => ({ ...before, [field]: value }));
  }

  async function save(event) {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await saveMerged({
        base: editable(network),
        mine: values,
        revision: network.metadata.revision,
        write: (value, expectedRevision) => patchNetwork(network.metadata, expectedRevision, value),
        async read() {
          const now = await readNetwork(network.metadata);
          return { value: editable(now), revision: now.metadata.revision };
        },
        // The answer comes from the second form, when the user has chosen.
        resolve: (merge) => new Promise((settle) => setConflict({ merge, settle })),
      });
      dialog.current.close(`${name} was saved.`);
    } catch (error) {
      setProblem(error.message);
    } finally {
      setBusy(false);
      setConflict(null);
    }
  }

  return (
    <dialog ref={dialog} aria-labelledby={title} onClose={() => (conflict?.settle(null), onClose(dialog.current.returnValue))}>
      <h2 id={title}>{conflict ? `${name} was changed by somebody else` : `Edit ${name}`}</h2>
      {conflict ? (
        <ConflictForm merge={conflict.merge} onChoose={(value) => (setConflict(null), conflict.settle(value))} />
      ) : (
        <form onSubmit={save}>
          {!current && <p className="hint" role="status">This network was deleted.</p>}
          {current && current.metadata.revision !== network.metadata.revision && !busy && (
            <p className="hint" role="status">Somebody changed this network since you opened it. Saving joins your changes with theirs.</p>
          )}
          <label>Description <input value={values.description ?? ""} maxLength={255} autoFocus onChange={(e) => set("description", e.target.value || null)} /></label>
          <label>MTU <input type="number" min={68} max={9216} value={values.mtu ?? ""} onChange={(e) => set("mtu", e.target.value ? Number(e.target.value) : null)} /></label>
          <label className="check"><input type="checkbox" checked={values.adminStateUp} onChange={(e) => set("adminStateUp", e.target.checked)} /> Up</label>
          <p className="problem" role="alert">{problem}</p>
          <div className="buttons">
            <button className="primary" disabled={busy}>Save</button>
            <button type="button" onClick={() => dialog.current.close()}>Cancel</button>
          </div>
        </form>
      )}
    </dialog>
  );
}

// ConflictForm asks, for each field that both changed, whose value holds.
function ConflictForm({ merge, onChoose }) {
  const [choices, setChoices] = useState({});
  const first = useRef(null);
  const open = merge.conflicts.filter((c) => !choices[c.path.join(".")]).length;
  useEffect(() => first.current?.focus(), []);

  function submit(event) {
    event.preventDefault();
    onChoose(resolve(merge, (c) => choices[c.path.join(".")]));
  }

  return (
    <form onSubmit={submit}>
      <p>You both changed the same. Which value should hold?</p>
      {merge.conflicts.map((c, n) => {
        const field = c.path.join(".");
        return (
          <fieldset key={field}>
            <legend>{labels[field] ?? field} <small>was {show(c.base)}</small></legend>
            {["mine", "theirs"].map((side, m) => (
              <label key={side} className="choice">
                <input ref={n + m === 0 ? first : undefined} type="radio" name={field} value={side} required checked={choices[field] === side} onChange={() => setChoices((before) => ({ ...before, [field]: side }))} />
                <span>{side === "mine" ? "Yours" : "Theirs"}</span> <b>{show(c[side])}</b>
              </label>
            ))}
          </fieldset>
        );
      })}
      {merge.theirs.length > 0 && <p className="hint">Theirs alone, kept: {merge.theirs.map((path) => labels[path.join(".")] ?? path.join(".")).join(", ")}</p>}
      {merge.mine.length > 0 && <p className="hint">Yours alone, saved: {merge.mine.map((path) => labels[path.join(".")] ?? path.join(".")).join(", ")}</p>}
      <div className="buttons">
        <button className="primary" disabled={open > 0}>Save</button>
        <button type="button" onClick={() => onChoose(null)}>Back</button>
      </div>
    </form>
  );
}

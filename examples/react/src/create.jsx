import { useState } from "react";
import { createNetwork } from "./api.js";

export function CreateForm({ onDone }) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);

  async function submit(event) {
    event.preventDefault();
    const form = event.currentTarget;
    const { name, mtu } = Object.fromEntries(new FormData(form));
    setBusy(true);
    setProblem("");
    try {
      await createNetwork({ name, mtu: mtu ? Number(mtu) : null });
      form.reset();
      form.elements.name.focus();
      onDone(`${name} was created.`);
    } catch (error) {
      setProblem(error.message);
    } finally {
      setBusy(false);
    }
  }

  return (
    <form className="create" onSubmit={submit} aria-label="Create a network">
      <label>Name <input name="name" required maxLength={253} autoComplete="off" autoCapitalize="none" spellCheck={false} aria-describedby="create-problem" /></label>
      <label>MTU <input name="mtu" type="number" min={68} max={9216} placeholder="1500" /></label>
      <button disabled={busy}>Create</button>
      <p id="create-problem" className="problem" role="alert">{problem}</p>
    </form>
  );
}

package e2e_test

import (
	"testing"
	"time"
)

// callers starts gateways that judge their callers, and asks them as one that has a role.
type callers struct {
	tokens *tokenFile
	// admin and editor are tokens: of the administrator, and of a caller with the role editor in all namespaces.
	admin, editor string
}

func newCallers(t *testing.T) *callers {
	t.Helper()
	i := &callers{tokens: newTokenFile(t)}
	i.admin = i.tokens.add("root", "admins", time.Time{})
	i.editor = i.tokens.add("editor", "-", time.Time{})
	return i
}

// start is the start of a test: its gateway is asked by the editor.
func (i *callers) start(t *testing.T, data string, args ...string) *gateway {
	t.Helper()
	g := start(t, data, append(args, "--tokens", i.tokens.path, "--admin-group", "token:admins")...)
	g.token = i.admin
	g.must(`mutation { upsertAccessBinding(input: {name: "editor", spec: {users: ["token:editor"], roles: ["editor"], namespaces: ["*"]}}) { created } }`)
	g.token = i.editor
	return g
}

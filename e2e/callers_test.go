package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// callers starts gateways that judge their callers, and asks them as one that has a role.
type callers struct {
	tokens *tokenFile
	// admin and editor are tokens: of the administrator, and of a caller with the role editor in all namespaces.
	admin, editor string
	// editorPath is a file with the token of the editor.
	editorPath string
}

func newCallers(t *testing.T) *callers {
	t.Helper()
	i := &callers{tokens: newTokenFile(t)}
	i.admin = i.tokens.add("root", "admins", time.Time{})
	i.editor = i.tokens.add("editor", "-", time.Time{})
	i.editorPath = filepath.Join(t.TempDir(), "editor")
	writeFile(t, i.editorPath, i.editor)
	return i
}

// start is the start of a test: its gateway is asked by the editor.
func (i *callers) start(t *testing.T, data string, args ...string) *gateway {
	t.Helper()
	g := start(t, data, append(args, "--tokens", i.tokens.path, "--admin-group", "token:admins")...)
	i.bind(g, "editor")
	g.tokenPath = i.editorPath
	return g
}

// bind gives the editor another role, by which the gateway is asked from then on.
func (i *callers) bind(g *gateway, role string) {
	g.t.Helper()
	g.token = i.admin
	g.must(fmt.Sprintf(`mutation { upsertAccessBinding(input: {
		name: "editor", spec: {users: ["token:editor"], roles: [%q], namespaces: ["*"]}
	}) { created } }`, role))
	g.token = i.editor
}

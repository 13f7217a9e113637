package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

// TestACatalogueGoesOneWay: over the admin socket, or over the network if the command line says so.
func TestACatalogueGoesOneWay(t *testing.T) {
	dir := commandtest.FreshContexts(t)
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kinds := filepath.Dir(put("kinds/shelves.graphqls", shelves))
	t.Setenv("SLUICE_SERVER", "http://127.0.0.1:1")
	t.Setenv("SLUICE_DATA", filepath.Join(dir, "data"))
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"apply " + kinds, 1, "no gateway answers at " + filepath.Join(dir, "data", "admin.sock")},
		{"reload", 1, "no gateway answers at " + filepath.Join(dir, "data", "admin.sock")},
		{"reload --server http://127.0.0.1:2", 1, "no answer from http://127.0.0.1:2/catalogue: nothing listens there"},
		{"apply " + kinds + " --server http://127.0.0.1:2/below", 1, "no answer from http://127.0.0.1:2/below/catalogue: "},
		{"diff " + kinds + " --server http://127.0.0.1:2", 1, "no answer from http://127.0.0.1:2/catalogue: "},
		{"reload --context none", 2, `no such context as "none"`},
		{"reload --server http://127.0.0.1:2 --admin-socket a", 2, "admin-socket: it has no effect with --server or --context"},
		{"apply " + kinds + " --context none --data a", 2, "data: it has no effect with --server or --context"},
		{"reload --ca a", 2, "ca: it has no effect without --server or --context"},
		{"diff " + kinds + " --token-file a", 2, "token-file: it has no effect without --server or --context"},
		{"diff --server http://127.0.0.1:2", 2, "name the folder to compare"},
		{"diff " + kinds + " --server http://127.0.0.1:2 --from " + kinds, 2, "from: it has no effect with --server or --context"},
		{"diff " + kinds + " --from " + kinds, 0, ""},
	} {
		out, errOut, code := commandtest.Run(t, newRoot, append([]string{"catalogue"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errOut, c.says) || (c.says == "") != (errOut == "") || out != "" {
			t.Errorf("%s: exit %d %s%s", c.args, code, out, errOut)
		}
	}
}

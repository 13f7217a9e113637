package operate

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// anExport returns a file with one record that could not be read.
func anExport(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := state.NewWriter(&out, state.Header{Secrets: state.Sealed})
	if err == nil {
		err = w.Write(state.Line{Resource: &backend.Resource{Key: backend.Key{Kind: "Net", Name: "a"}}, Unreadable: true})
	}
	if err == nil {
		_, err = w.Close(state.End{Unreadable: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSaveExport_GivesAFileItsNameOnceItsEndWasSeen(t *testing.T) {
	file := anExport(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "state.gz")
	for n := range file {
		if _, err := saveExport(path, bytes.NewReader(file[:n]), terminal.Streams{}); !errors.Is(err, state.ErrCut) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if left, err := os.ReadDir(folder); len(left) > 0 || err != nil {
			t.Fatalf("cut at %d: %v is left, %v", n, left, err)
		}
	}
	broken := errors.New("connection reset")
	from := io.MultiReader(bytes.NewReader(file[:40]), iotestError{broken})
	if _, err := saveExport(path, from, terminal.Streams{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	out, err := saveExport(path, bytes.NewReader(file), terminal.Streams{})
	if err != nil || len(out.unreadable) != 1 || out.end.Unreadable != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	stored, err := os.ReadFile(path)
	info, failed := os.Stat(path)
	if err != nil || failed != nil || !bytes.Equal(stored, file) || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, %v, %v", len(stored), info, err)
	}
}

// iotestError is a reader that fails.
type iotestError struct{ err error }

func (r iotestError) Read([]byte) (int, error) { return 0, r.err }

func TestExport_MistakesAreOneClearLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "to: a file is wanted"},
		{[]string{"--to", "f", "--no-secrets", "--plain-secrets"}, "no-secrets, plain-secrets: choose one"},
		{[]string{"--to", "f", "--server", "http://127.0.0.1:1", "--plain-secrets"}, "plain-secrets: over the network"},
		{[]string{"--to", "f", "--store", "nowhere"}, "there is no store at nowhere"},
		{[]string{"--to", "f", "--store", "nowhere", "--data", "x"}, "data: it has no effect with --store"},
		{[]string{"--to", ".", "--store", "nowhere"}, "to: . is a folder; name a file in it"},
		{[]string{"--to", "f", "network"}, "kinds are accepted with --from"},
		{[]string{"--to", "f", "-o", "manifest"}, "output: it has no effect without --from"},
		{[]string{"--from", "f"}, "-o manifest is accepted"},
		{[]string{"--from", "nowhere", "-o", "manifest"}, "from: nowhere: open nowhere: no such file"},
		{[]string{"--from", "f", "-o", "manifest", "networkz"}, "known kinds: "},
		{[]string{"--from", "f", "-o", "manifest", "--to", "f"}, "to: it has no effect with --from"},
		{[]string{"--to", "f", "--redis-prefix", "x"}, "redis-prefix: it has no effect without --store"},
		{[]string{"--to", "f", "--token-file", "x"}, "token-file: it has no effect without --server"},
	} {
		t.Chdir(t.TempDir())
		_, errOut, code := commandtest.Run(t, newRoot, append([]string{"export"}, c.args...)...)
		if code != 2 || !strings.Contains(errOut, c.says) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit %d %s", c.args, code, errOut)
		}
	}
}

package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/identity"
)

func TestTokenCreate_TakesBackATokenThatCannotBePrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	commandtest.Must(t, newRoot, "token", "create", "first", "--tokens", path)
	var errs strings.Builder
	code := command.Run(t.Context(), newRoot, []string{"token", "create", "ci", "--tokens", path}, terminal.Streams{In: strings.NewReader(""), Out: commandtest.FullDisk{}, Err: &errs})
	if code != exit.CodeFail || !strings.Contains(errs.String(), "so it was taken back: no space left") {
		t.Errorf("exit %d %s", code, errs.String())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if tokens, _ := identity.ParseTokens(raw); len(tokens) != 1 || tokens[0].Name != "first" {
		t.Errorf("%s", raw)
	}
}

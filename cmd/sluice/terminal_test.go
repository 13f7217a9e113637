package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/identity"
)

// full is a stream to a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestRun_FailsIfTheOutputCannotBeWritten(t *testing.T) {
	fresh(t)
	for _, args := range [][]string{{"version"}, {"catalogue", "check"}, {"catalogue", "print"}} {
		var errs strings.Builder
		code := run(t.Context(), args, streams{in: strings.NewReader(""), out: full{}, err: &errs})
		if code != exitFail || strings.Count(errs.String(), "no space left") != 1 {
			t.Errorf("%v: exit %d %s", args, code, errs.String())
		}
	}
}

func TestTokenCreate_TakesBackATokenThatCannotBePrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	must(t, "token", "create", "first", "--tokens", path)
	var errs strings.Builder
	code := run(t.Context(), []string{"token", "create", "ci", "--tokens", path}, streams{in: strings.NewReader(""), out: full{}, err: &errs})
	if code != exitFail || !strings.Contains(errs.String(), "so it was taken back: no space left") {
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

func TestStreams_ProgressGoesAwayBeforeAnythingIsWritten(t *testing.T) {
	var terminal strings.Builder
	line := &progressLine{to: &terminal}
	std := streams{out: &stream{to: &terminal, line: line}, err: &stream{to: &terminal, line: line}}
	std.progress(1, manyResources) // not many
	var failed tally
	list := make([]int, manyResources+1)
	for i := range list {
		list[i] = i
	}
	each(t.Context(), std, &failed, list, func(i int) error {
		if i < 2 {
			_, _ = std.out.Write([]byte("done\n"))
		}
		return nil
	})
	const clear = "\r\x1b[K"
	if want := clear + "1 of 101 ..." + clear + "done\n" + clear + "2 of 101 ..." + clear + "done\n" + clear + "3 of 101 ..."; !strings.HasPrefix(terminal.String(), want) {
		t.Errorf("%.120q", terminal.String())
	}
}

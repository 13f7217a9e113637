package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The size of the terminals here.
const (
	columns = "100"
	rows    = "30"
)

// terminal is a shell in a terminal of its own, as a person sees it.
type terminal struct {
	t      *testing.T
	g      *gateway
	folder string // where the shell is
	socket string
	// transcript is what was recorded.
	transcript strings.Builder
}

// openTerminal starts a shell in a folder with files. It knows the gateway, and sluice by
// its name.
func openTerminal(t *testing.T, files map[string]string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("the tests of the terminal need tmux (make tmux installs it)")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "tmux") // a path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, "")
	g.cli(credentials("s"), "apply", "-f", "-")
	s := &terminal{t: t, g: g, folder: folder(t, files), socket: filepath.Join(sockets, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", s.socket, "kill-server").Run()
		_ = os.RemoveAll(sockets)
	})
	shell := []string{"env", "-i", "PS1=$ ", "PATH=" + filepath.Dir(path) + ":" + os.Getenv("PATH"), "TERM=screen", "LANG=C.UTF-8", "HOME=" + s.folder, "TMPDIR=" + s.folder,
		"SLUICE_SERVER=" + s.g.address, "sh"}
	s.tmux(append([]string{"-f", os.DevNull, "-u", "new-session", "-d", "-x", columns, "-y", rows, "-c", s.folder, "-s", "s"}, shell...)...)
	s.await("a prompt", isPrompt)
	return s
}

// tmux runs a command of tmux and returns what it prints.
func (s *terminal) tmux(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen is what is on the terminal now, without the empty lines at its end.
func (s *terminal) screen() string {
	s.t.Helper()
	return strings.TrimRight(s.tmux("capture-pane", "-p", "-t", "s"), "\n ")
}

// await waits until the screen is as it should be.
func (s *terminal) await(what string, is func(screen string) bool) {
	s.t.Helper()
	late := time.After(patience)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !is(s.screen()) {
		select {
		case <-look.C:
		case <-late:
			s.t.Fatalf("%s is awaited on this screen:\n%s", what, s.screen())
		}
	}
}

// isPrompt reports whether the shell waits for a command, perhaps behind a ^C.
func isPrompt(screen string) bool {
	last := screen[strings.LastIndexByte(screen, '\n')+1:]
	return last == "$" || last == "^C$"
}

// sees waits until a text is on the screen.
func (s *terminal) sees(text string) {
	s.t.Helper()
	s.await(text, func(screen string) bool { return strings.Contains(screen, text) })
}

// types enters a line, and waits until it is on the screen before its end is entered.
func (s *terminal) types(line string) {
	s.t.Helper()
	s.tmux("send-keys", "-t", "s", "-l", line)
	s.await(line, func(screen string) bool { return strings.HasSuffix(screen, line) })
	s.tmux("send-keys", "-t", "s", "Enter")
	s.await("the end of the line", func(screen string) bool { return !strings.HasSuffix(screen, line) })
}

// runs enters a command and waits until it has ended.
func (s *terminal) runs(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		s.types(line)
		s.await("a prompt", isPrompt)
	}
}

// interrupts presses ^C and waits for the shell.
func (s *terminal) interrupts() {
	s.t.Helper()
	s.tmux("send-keys", "-t", "s", "C-c")
	s.await("a prompt", isPrompt)
}

// writes puts a text into a file of the shell's folder.
func (s *terminal) writes(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

// edits makes a script the editor of the shell. It shows the top of what it is given.
func (s *terminal) edits(script string) {
	s.t.Helper()
	s.writes("editor", "#!/bin/sh\nhead -4 \"$1\"\n"+script+"\n")
	s.runs("export EDITOR=./editor; clear")
}

// volatile are what differs from run to run, each with what stands for it in a transcript.
var volatile = []struct {
	text *regexp.Regexp
	mask string
}{
	{regexp.MustCompile(`\b\d{10,}-\d+\b`), "<revision>"},
	{regexp.MustCompile(`/\S*/sluice-net-[a-z]-\d+\.yaml`), "<file>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[0-9:.]+Z`), "<time>"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "<time>"},
	{regexp.MustCompile(`(?m)\b\d+[smh]( +|$)`), "<age>  "},
	{regexp.MustCompile(`\b\d+[smh], deleting`), "<age>, deleting"},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// records adds what is on the screen to the transcript. A line that the terminal wraps
// is one line there.
func (s *terminal) records(title string) {
	s.t.Helper()
	screen := strings.TrimRight(s.tmux("capture-pane", "-p", "-J", "-t", "s"), "\n ")
	for _, v := range volatile {
		screen = v.text.ReplaceAllString(screen, v.mask)
	}
	s.transcript.WriteString("== " + title + "\n" + screen + "\n\n")
}

// matches holds the transcript against the file of that name.
func (s *terminal) matches(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", "terminal", name+".txt")
	got := s.transcript.String()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if got != string(want) {
		s.t.Errorf("%s is not what is on the screen (go test ./e2e -run Screen -update writes it):\n%s\nit is\n%s", path, want, got)
	}
}

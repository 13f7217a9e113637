package write

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/shell"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// openEditor runs the user's editor on a file. The editor is a shell command in an environment variable. ^C is left to
// the editor. Other signals that would end this program end the editor.
func openEditor(std terminal.Streams, path string) error {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL", config.EditorVariable} {
		if v := os.Getenv(name); strings.TrimSpace(v) != "" {
			editor = v
		}
	}
	words, err := shell.Fields(editor, nil)
	if err != nil || len(words) == 0 {
		return exit.Usage(fmt.Errorf(
			"edit: %q is no command of an editor; blanks in the name of a program need quotes; the text is in %s",
			editor,
			path,
		))
	}
	cmd := exec.Command(words[0], append(words[1:], path)...)
	cmd.Stdin = std.In
	cmd.Stdout = terminal.Unwrap(std.Out)
	cmd.Stderr = terminal.Unwrap(std.Err)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	err = cmd.Start()
	if err == nil {
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		err = waitForEditor(ended, signals, cmd.Process)
	}
	if err != nil {
		return fmt.Errorf("edit: %s: %w; nothing was changed, the text is in %s", editor, err, path)
	}
	return nil
}

// waitForEditor waits until the editor has ended. It passes signals on to it, except those that a terminal also sends
// to the editor.
func waitForEditor(ended <-chan error, signals <-chan os.Signal, editor *os.Process) error {
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if s != os.Interrupt && s != syscall.SIGQUIT { // those a terminal sends to the editor too
				_ = editor.Signal(s)
			}
		}
	}
}

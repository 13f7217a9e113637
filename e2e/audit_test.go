package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// auditLine is a line of an audit log.
type auditLine struct {
	Event, Code, Verb, Kind, Namespace, Name, Revision, By, RequestID, TraceID, Position, Catalogue string
	Paths                                                                                           []string
	Epoch, EpochBefore                                                                              uint64
}

// auditLines are the lines of a file; what a crash has left of the last one is none.
func auditLines(path string) (out []auditLine, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var one auditLine
		if err := json.Unmarshal(line, &one); err == nil {
			out = append(out, one)
		}
	}
	return out, nil
}

func TestTheAuditLogHasEachChangeOnceWhenTheGatewayIsKilled(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	for name, flags := range map[string][]string{"bolt": nil, "redis": {"--redis", redistest.Start(t).URL(), "--redis-shards", "4"}} {
		t.Run(name, func(t *testing.T) {
			data, path := t.TempDir(), filepath.Join(t.TempDir(), "audit.log")
			open := func() *gateway { return start(t, data, append([]string{"--audit", path}, flags...)...) }
			g := open()
			opened := func() error {
				lines, err := auditLines(path)
				if err == nil && len(lines) == 0 {
					err = errors.New("nothing is written")
				}
				return err
			}
			redistest.Await(t, "the file begins", opened)
			made := map[string]bool{}
			for round := range 8 {
				most := 1 + rand.IntN(150)
				done := make(chan []string)
				reached := make(chan struct{})
				go func() {
					var answered []string
					reach := sync.OnceFunc(func() { close(reached) })
					for i := range 200 {
						if i == most {
							reach()
						}
						name := fmt.Sprintf("n%d-%d", round, i)
						a, err := g.send(fmt.Sprintf(`mutation { createProject(input: {namespace: "ns-%d", name: %q, spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { project { id } } }`, i%7, name), nil)
						if err != nil || a.codes() != "" {
							if i < most {
								t.Logf("round %d: only %d of %d were answered: %v %+v", round, i, most, err, a.Errors)
							}
							break
						}
						answered = append(answered, name)
					}
					reach() // also if an error came before
					done <- answered
				}()
				<-reached
				g.kill()
				for _, name := range <-done {
					made[name] = true
				}
				g = open()
			}
			redistest.Await(t, "all is written", func() error {
				lines, err := auditLines(path)
				if err != nil {
					return err
				}
				missing := len(made)
				for _, line := range lines {
					if line.Event == "ADDED" && made[line.Name] {
						missing--
					}
				}
				if missing != 0 {
					return fmt.Errorf("%d of %d are missing", missing, len(made))
				}
				return nil
			})
			lines, err := auditLines(path)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, line := range lines {
				key := line.Namespace + " " + line.Name + " " + line.Revision
				if line.Revision != "" && seen[key] {
					t.Errorf("%s stands twice", key)
				}
				seen[key] = true
				if line.Event == "ADDED" && (line.By != "anonymous" || line.RequestID == "") {
					t.Errorf("%+v", line)
				}
				if line.Event == "GAP" {
					t.Error("there is a gap")
				}
			}
			t.Logf("%d resources in %d lines", len(made), len(lines))

			// The file is renamed, as logrotate does it.
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
			if err := g.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			redistest.Await(t, "the file is reopened", func() error {
				g.must(`mutation { upsertProject(input: {name: "after", labels: [{key: "n", value: "` + fmt.Sprint(rand.Int()) + `"}], spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { created } }`)
				lines, err := auditLines(path)
				if err == nil && (len(lines) < 2 || lines[0].Event != "OPENED" || lines[0].Position == "") {
					err = fmt.Errorf("%+v", lines)
				}
				return err
			})
		})
	}
}

func TestTheAuditLogTellsRefusalsAndRevealsButNoValue(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	g := start(t, t.TempDir(), "--audit", path)
	g.must(`mutation { createSecret(input: {name: "s", spec: {stringData: [{key: "k", value: "hidden-value"}]}}) { secret { id metadata { updatedBy } } } }`)
	g.must(`{ reveal(kind: "Secret", name: "s") { values { value } } }`)
	var lines []auditLine
	redistest.Await(t, "the reveal and the change are written", func() (err error) {
		if lines, err = auditLines(path); err != nil {
			return err
		}
		events := ""
		for _, line := range lines {
			events += line.Event + " "
		}
		if !strings.Contains(events, "ADDED") || !strings.Contains(events, "REVEALED") {
			return fmt.Errorf("%s", events)
		}
		return nil
	})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hidden-value") || strings.Contains(string(text), "paths") {
		t.Errorf("%s", text)
	}
}

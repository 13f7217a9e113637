package e2e_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/redistest"
)

// TestHistory_ThatIsLostIsInTheLogTheMetricsAndTheAuditLog: a Redis that restarts without what it had acknowledged, and
// one that is emptied. What is lost includes the rights of callers; their open streams end and show nothing more.
func TestHistory_ThatIsLostIsInTheLogTheMetricsAndTheAuditLog(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	for name, lose := range map[string]func(*redistest.Server){
		"restarted empty": (*redistest.Server).Restart,
		"FLUSHALL":        func(s *redistest.Server) { s.Do("FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			file := filepath.Join(t.TempDir(), "audit.log")
			callers := newCallers(t)
			g := callers.start(t, "", "--redis", server.URL(), "--audit", file, "--log-format", "json")
			g.create("before", nil)
			stream := g.dial()
			defer stream.close()
			stream.subscribe("1", watchNetworks, nil)
			stream.next("1")
			if _, body := g.do("GET", "/metrics", ""); !strings.Contains(body, "\nsluice_store_histories_lost_total 0\n") {
				t.Error("before: the metric is not 0")
			}
			lose(server)
			redistest.Await(t, "a line of the audit log", func() error {
				lines, err := auditLines(file)
				if err != nil {
					return err
				}
				for _, line := range lines {
					if line.Event != "HISTORY_LOST" {
						continue
					}
					if line.EpochBefore == 0 || line.Epoch <= line.EpochBefore {
						t.Errorf("%+v", line)
					}
					return nil
				}
				return errors.New("it is missing")
			})
			if _, body := g.do("GET", "/metrics", ""); !strings.Contains(body, "\nsluice_store_histories_lost_total 1\n") {
				t.Error("the metric is not 1")
			}
			said := 0
			for line := range strings.Lines(g.log.String()) {
				if strings.Contains(line, `"level":"error"`) && strings.Contains(line, "the history that this gateway saw") {
					said++
				}
			}
			if said != 1 {
				t.Errorf("%d lines of the log say it:\n%s", said, g.log)
			}
			if got := stream.refusal("1"); got != "POSITION_EXPIRED" {
				t.Errorf("the stream ends with %s", got)
			}
			if a := g.post(`{ networks { totalCount } }`, nil); a.codes() != "FORBIDDEN" {
				t.Errorf("a caller whose rights are lost is answered %+v", a)
			}
			g.token = callers.admin
			redistest.Await(t, "the gateway to go on", func() error {
				a := g.post(`{ networks { totalCount } }`, nil)
				if a.codes() != "" || a.get("networks", "totalCount") != 0.0 {
					return fmt.Errorf("%+v", a)
				}
				return nil
			})
		})
	}
}

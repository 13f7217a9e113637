package e2e_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// judged is a gateway that judges its callers: token:root is its administrator.
type judged struct {
	*gateway
	tokens *tokenFile
	// texts are the tokens by their names.
	texts map[string]string
	audit string
}

// startJudged runs a gateway with a token for each name, and for root.
func startJudged(t *testing.T, names ...string) *judged {
	t.Helper()
	g := &judged{tokens: newTokenFile(t), texts: map[string]string{}, audit: filepath.Join(t.TempDir(), "audit.log")}
	g.texts["root"] = g.tokens.add("root", "admins", time.Time{})
	for _, name := range names {
		g.texts[name] = g.tokens.add(name, "-", time.Time{})
	}
	g.gateway = start(t, "", "--tokens", g.tokens.path, "--admin-group", "token:admins", "--audit", g.audit, "--access-log")
	return g
}

// as is a client with the token of a name.
func (g *judged) as(name string) *caller { return g.caller(nil).with(g.texts[name]) }

// administer has the administrator change something.
func (g *judged) administer(query string) {
	g.t.Helper()
	if a := g.as("root").http(query).next(); a.codes() != "" {
		g.t.Fatalf("%s: %+v", query, a)
	}
}

// bind gives a token a role in namespaces.
func (g *judged) bind(token, role string, namespaces ...string) {
	g.t.Helper()
	g.administer(fmt.Sprintf(`mutation { createAccessBinding(input: {name: "%s-%s", spec: {users: ["token:%s"], roles: [%q], namespaces: ["%s"]}}) { outcome: accessBinding { id } } }`,
		token, role, token, role, strings.Join(namespaces, `", "`)))
}

func TestWhatRolesRefuseIsInTheAuditLogOnceAndInTheAccessLog(t *testing.T) {
	g := startJudged(t, "reader")
	g.bind("reader", "viewer", "*")
	questions := map[string]string{
		"of the engine":   `query Asked { secrets { totalCount } }`,
		"of the core":     `query Asked { reveal(kind: "Secret", name: "s") { uid } }`,
		"a mutation":      `mutation Asked { deleteNetwork(input: {name: "n"}) { state } }`,
		"a core mutation": `mutation Asked { updateKind(input: {kind: "Network", controlled: true}) { clientMutationId } }`,
	}
	subscription := `subscription Asked { secretChanges { type } }`
	asked := 0
	ask := func(name, transport, query string) {
		t.Helper()
		asked++
		s := transports[transport](g.as("reader"), query)
		defer s.stop()
		a, how := s.outcome()
		if a.codes() != "FORBIDDEN" && !strings.Contains(how, "FORBIDDEN") {
			t.Errorf("%s by %s: %+v %s", name, transport, a, how)
		}
		var refused []auditLine
		redistest.Await(t, "the refusal is written", func() error {
			lines, err := auditLines(g.audit)
			if err != nil {
				return err
			}
			refused = nil
			for _, line := range lines {
				if line.Event == "REFUSED" {
					refused = append(refused, line)
				}
			}
			if len(refused) < asked {
				return errors.New("it is missing")
			}
			return nil
		})
		if last := refused[len(refused)-1]; len(refused) != asked || last.Code != "FORBIDDEN" || last.By != "token:reader" || last.Kind == "" {
			t.Errorf("%s by %s: %d refusals for %d questions, the last is %+v", name, transport, len(refused), asked, last)
		}
		redistest.Await(t, "the access log has it", func() error {
			n := 0
			for line := range strings.Lines(g.log.String()) {
				if strings.Contains(line, `"operationName":"Asked"`) && strings.Contains(line, `"code":"FORBIDDEN"`) && strings.Contains(line, "token:reader") {
					n++
				}
			}
			if n != asked {
				return fmt.Errorf("%d lines for %d questions", n, asked)
			}
			return nil
		})
	}
	for transport := range transports {
		for name, query := range questions {
			ask(name, transport, query)
		}
	}
	for _, transport := range streaming() {
		ask("a subscription", transport, subscription)
	}
}

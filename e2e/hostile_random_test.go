//go:build hostile

package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

const (
	// manyRandom is how many random documents are sent unless HOSTILE_DOCUMENTS says it.
	manyRandom = 500
	// manyDear is how many of the dearest are printed.
	manyDear = 10
	// mostDear is how many may be above the bound before the rest is left out.
	mostDear = 20
)

// suspect is what a document may spend on a gateway that has answered others without
// being sent again to a new one.
var suspect = cost{cpu: mostCPU / 2, grown: mostMemory / 2}

// random is a document, and what it cost.
type random struct {
	number         int
	brief, outcome string
	spent          cost
	kind           string // of what it spent most, by what the gateway charged
	body           string
	operation      ast.Operation
	repeatedAlone  bool
}

// setting returns a number of the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// random sends documents from the grammar of the whole schema. None may be dearer than
// any other request. HOSTILE_SEED and HOSTILE_DOCUMENTS choose them, HOSTILE_ONLY is one of
// them, and HOSTILE_FOLDER keeps the bodies of the dearest.
func (b *besieged) random(t *testing.T) {
	out, errOut, code := sluice(t, "", "catalogue", "print", b.catalogue)
	if code != 0 {
		t.Fatal(errOut)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: out})
	if err != nil {
		t.Fatal(err)
	}
	seed := setting(t, "HOSTILE_SEED", 1)
	first, count := uint64(0), setting(t, "HOSTILE_DOCUMENTS", manyRandom)
	if only := setting(t, "HOSTILE_ONLY", count); only != count {
		first, count = only, 1
	}
	fmt.Printf("%d random documents of HOSTILE_SEED=%d\n", count, seed)
	const workers = 2
	var mu sync.Mutex
	var all []random
	tooDear := 0
	t.Run("", func(t *testing.T) {
		for worker := range uint64(workers) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				s := &sender{t: t, b: b, schema: schema, seed: seed}
				for n := first + worker; n < first+count; n += workers {
					r := s.send(int(n))
					mu.Lock()
					all = append(all, r)
					if r.spent.above(ofOne) {
						tooDear++
					}
					enough := tooDear > mostDear
					mu.Unlock()
					if enough {
						return // it takes too long to look for more
					}
				}
			})
		}
	})
	report(t, seed, all)
}

// sender sends random documents to a gateway, and to another one after it was ended.
type sender struct {
	t      *testing.T
	b      *besieged
	schema *ast.Schema
	seed   uint64

	g     *gateway
	known fixture
	fresh int64 // bytes that the gateway had before the first document
	wrote int
}

// renew starts a gateway that has answered nothing.
func (s *sender) renew() {
	if s.g != nil {
		_ = s.g.cmd.Process.Kill()
		s.g.wait()
	}
	s.g = s.b.start(s.t, large)
	s.known = s.g.known(s.t)
	p := process{s.t, s.g.cmd.Process.Pid}
	p.idle()
	s.fresh, _ = p.resident("VmRSS")
}

// known reads what random documents name.
func (g *gateway) known(t *testing.T) fixture {
	t.Helper()
	out := fixture{ids: map[string]string{}, revisions: map[string]string{}, names: map[string]string{"Network": "net", "Port": "port-7", "Secret": "s", "Blob": "blob-0"}}
	for kind, name := range out.names {
		a := g.must(fmt.Sprintf(`{ resource(kind: "%s", name: "%s") { id metadata { revision } } }`, kind, name))
		id, _ := a.get("resource", "id").(string)
		out.revisions[kind], _ = a.get("resource", "metadata", "revision").(string)
		out.ids[kind] = id
	}
	kinds, _ := g.must(`{ kinds { name } }`).get("kinds").([]any)
	for _, k := range kinds {
		out.kinds = append(out.kinds, k.(map[string]any)["name"].(string))
	}
	return out
}

// send writes a document, sends it, and sends it alone to a new gateway if it seems dear.
func (s *sender) send(number int) random {
	if s.g == nil {
		s.renew()
	}
	r := random{number: number}
	for attempt := uint64(0); ; attempt++ {
		w := &writer{Rand: rand.New(rand.NewPCG(s.seed, uint64(number)<<8|attempt)), schema: s.schema, known: s.known}
		q, brief, operation := w.document()
		raw, _ := json.Marshal(map[string]any{"query": q.query, "variables": q.variables, "extensions": map[string]any{"cost": true}})
		if r.body, r.brief, r.operation = string(raw), brief, operation; len(raw) <= mostBody {
			break
		}
	}
	p := process{s.t, s.g.cmd.Process.Pid}
	s.once(&r, p.begin(cost{cpu: mostCPU * 3 / 2, grown: mostMemory * 3 / 2}))
	after, err := p.resident("VmRSS")
	if r.spent.above(suspect) || err != nil {
		s.renew()
		p = process{s.t, s.g.cmd.Process.Pid}
		r.repeatedAlone = true
		s.once(&r, p.begin(cost{cpu: 3 * mostCPU, grown: 2 * mostMemory}))
		after, err = p.resident("VmRSS")
	}
	if err != nil || after-s.fresh > suspect.grown {
		s.renew()
	}
	return r
}

// costOf finds what the gateway charged, at the end of an answer.
var costOf = regexp.MustCompile(`"cost":(\{[^}]*\})`)

// once sends a document and notes what it spent. A subscription is told of one write,
// and then left.
func (s *sender) once(r *random, m *meter) {
	accept := "application/json"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.operation == ast.Subscription {
		accept = "text/event-stream"
	}
	var head, tail string
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		var err error
		if head, tail, err = s.g.exchange(ctx, r.body, accept); err != nil && head == "" {
			head = `"code":"GONE"`
		}
	}()
	if r.operation == ast.Subscription {
		m.settle()
		s.wrote++
		_, _ = s.g.send(fmt.Sprintf(`mutation { upsertPort(input: {name: "port-0", `+portSpec+`}) { created } }`, fmt.Sprint("c", s.wrote)), nil)
		m.settle()
		cancel()
	}
	<-answered
	r.spent = m.spent()
	r.outcome = said(head)
	r.kind = kindOf(r.outcome, tail)
}

// kindOf names what an operation spent most of, as parts of what it may. What it spent
// little of did not make it dear: the budgets cannot see what did.
func kindOf(outcome, tail string) string {
	var charged map[string]float64
	if found := costOf.FindStringSubmatch(tail); found != nil {
		_ = json.Unmarshal([]byte(found[1]), &charged)
	}
	most := map[string]float64{"rows": 200_000, "scans": 20_000, "objects": 100_000, "bytes": 16 << 20, "introspection": 150_000, "held": 32 << 20}
	name, part := "unseen", 0.05
	for thing, n := range charged {
		if most[thing] > 0 && n/most[thing] > part {
			name, part = thing, n/most[thing]
		}
	}
	if _, limit, ok := strings.Cut(outcome, " "); ok {
		return limit
	}
	return name
}

// report prints the dearest, of all and by kind, and fails for those above the bound.
func report(t *testing.T, seed uint64, all []random) {
	outcomes := tally{counts: map[string]int{}}
	for _, r := range all {
		outcomes.counts[r.outcome]++
	}
	fmt.Printf("%d random documents were answered %s\n", len(all), &outcomes)
	for _, by := range []struct {
		name string
		of   func(random) int64
	}{{"CPU", func(r random) int64 { return int64(r.spent.cpu) }}, {"memory", func(r random) int64 { return r.spent.grown }}} {
		slices.SortFunc(all, func(a, b random) int { return cmp.Compare(by.of(b), by.of(a)) })
		fmt.Printf("dearest by %s:\n", by.name)
		for _, r := range all[:min(len(all), manyDear)] {
			fmt.Println("  ", r)
		}
		kinds := map[string]bool{}
		fmt.Printf("the dearest by %s of each kind:\n", by.name)
		for _, r := range all {
			if !kinds[r.kind] {
				kinds[r.kind] = true
				fmt.Println("  ", r)
			}
		}
	}
	for _, r := range all {
		if folder := os.Getenv("HOSTILE_FOLDER"); folder != "" && r.spent.above(suspect) {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d-%d.json", seed, r.number)), []byte(r.body), 0o600); err != nil {
				t.Error(err)
			}
		}
		if r.spent.above(ofOne) {
			t.Errorf("%v; at most %v are accepted. HOSTILE_SEED=%d HOSTILE_ONLY=%d repeats it", r, ofOne, seed, r.number)
		}
	}
}

func (r random) String() string {
	alone := ""
	if r.repeatedAlone {
		alone = ", alone"
	}
	return fmt.Sprintf("%6d %v%s, %d KB, %s, answered %s: %.400s", r.number, r.spent, alone, len(r.body)>>10, r.kind, r.outcome, r.brief)
}

// Package kit tests whether a resource service keeps the promises of the contract, with one test for each promise. The
// tests call an [owner.Service] with resources that are generated from the SDL of the kind. The names of all these
// resources begin with the same prefix, and the resources are deleted at the end.
package kit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// Status is the result of a test.
type Status string

// The statuses of tests.
const (
	Passed  Status = "ok"
	Failed  Status = "FAILED"
	Skipped Status = "skipped"
)

// Result is the result of the test of one promise.
type Result struct {
	// Kind is the tested kind; empty for a promise about the whole service.
	Kind string
	// Promise is the short name of the promise, such as "reads-own-writes".
	Promise string
	// Says is the promise in one sentence.
	Says   string
	Status Status
	// Detail describes how the promise was broken, or names the missing capability.
	Detail string
}

// Config configures [Run]. Service is required.
type Config struct {
	Service owner.Service
	// Kinds are the names of the kinds to test. If it is empty, all kinds of the service are tested.
	Kinds []string
	// Descriptors are the kinds in the SDL of the service. The specs of other kinds come from Examples.
	Descriptors []descriptor.Kind
	// Examples maps kinds to resources that the service accepts. The tests use their specs. If Namespace is empty, they
	// also use their namespaces.
	Examples map[string][]owner.Resource
	// Namespace is the namespace for resources of NAMESPACED kinds. The default is "default".
	Namespace string
	// Seed determines the values in specs and the prefix of names. Two runs at the same time must have different seeds.
	Seed uint64
	// Restart restarts the service and returns after the service has started. If it is nil, the service is not
	// restarted.
	Restart func(context.Context) error
	// Raw calls the service with a body in the JSON form of the contract, and returns the body of the answer. call is
	// the name of the call, such as "Get". Raw is nil if the service does not support the JSON form.
	Raw func(ctx context.Context, call string, body []byte) ([]byte, error)
	// Patience is the maximum time to wait for a change or for a restart. The default is 10 s.
	Patience time.Duration
	// Report is called with each result. It may be nil.
	Report func(Result)
}

// The defaults of a [Config], and other settings of [Run].
const (
	DefaultPatience = 10 * time.Second
	// cleanupTime is the time limit for deleting the resources of a run.
	cleanupTime = 30 * time.Second
	// prefix is the prefix of the names of all resources of all runs.
	prefix = "sluice-test-"
)

// Validate returns an error unless the configuration is valid.
func (c Config) Validate() error {
	if c.Service == nil {
		return errors.New("service: a service wanted")
	}
	if c.Patience < 0 {
		return fmt.Errorf("patience: %v is negative", c.Patience)
	}
	return nil
}

// ErrChoice means that [Config.Kinds] has a kind that the service does not have.
var ErrChoice = errors.New("the service has no kind")

// promise is a promise of the contract and its test.
type promise struct {
	name, says string
	// needs are the capabilities that the test requires.
	needs []capability
	// shared reports whether the promise is about the whole service. Such a promise is tested only with the first
	// suitable kind.
	shared bool
	test   func(context.Context, *trial) error
}

type capability string

const (
	changes     capability = "changes"
	writes      capability = "writes"
	conditional capability = "conditional"
	dryRun      capability = "dry_run"
	labels      capability = "labels"
	annotations capability = "annotations"
	description capability = "description"
)

func has(k owner.Kind, c capability) bool {
	switch c {
	case changes:
		return k.Changes
	case writes:
		return k.Writes
	case conditional:
		return k.Conditional
	case labels:
		return !k.NoLabels
	case annotations:
		return !k.NoAnnotations
	case description:
		return !k.NoDescription
	default:
		return k.DryRun
	}
}

// skip is the error of a test that was skipped. Its text is the reason.
type skip string

func (s skip) Error() string { return string(s) }

// Run tests the promises of a service and returns the results. If ctx is cancelled, Run ends early but still deletes
// its resources. It returns an error if nothing could be tested.
func Run(ctx context.Context, c Config) ([]Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	d, err := c.Service.Describe(ctx)
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	tested, err := chosen(d, c.Kinds)
	if err != nil {
		return nil, err
	}
	r := &run{Config: c, random: rand.New(rand.NewPCG(c.Seed, 0)), done: map[string]bool{}}
	r.prefix = fmt.Sprintf("%s%x-", prefix, r.random.Uint32())
	for _, k := range tested {
		r.kind(ctx, k)
	}
	return r.results, ctx.Err()
}

// chosen returns the kinds with the given names. Without names it returns all kinds of the service.
func chosen(d owner.Description, names []string) ([]owner.Kind, error) {
	known := map[string]owner.Kind{}
	var all []string
	for _, k := range d.Kinds {
		if _, twice := known[k.Name]; twice || k.Name == "" {
			return nil, fmt.Errorf("describe: the kind %q is there twice or has no name", k.Name)
		}
		known[k.Name] = k
		all = append(all, k.Name)
	}
	if len(all) == 0 {
		return nil, errors.New("describe: the service has no kinds")
	}
	if len(names) == 0 {
		names = all
	}
	var out []owner.Kind
	for _, name := range names {
		k, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("%w %q, but %q", ErrChoice, name, all)
		}
		out = append(out, k)
	}
	return out, nil
}

// run has the state of one call of [Run].
type run struct {
	Config
	random  *rand.Rand
	prefix  string
	results []Result
	// done has the shared promises that were already tested.
	done map[string]bool
}

// kind tests all promises with one kind.
func (r *run) kind(ctx context.Context, k owner.Kind) {
	if k.NoCreate { // there is nothing that could be written
		k.Writes = false
		k.Conditional = false
	}
	t := &trial{run: r, kind: k, made: map[backend.Key]bool{}}
	begin := Result{Kind: k.Name, Promise: "accepts", Says: "a spec that the SDL allows is accepted"}
	if err := t.calibrate(ctx); err != nil {
		r.report(begin, err)
		t.cleanup(ctx)
		return
	}
	if k.Writes {
		r.report(begin, nil)
	}
	for _, p := range promises() {
		if ctx.Err() != nil {
			break
		}
		if p.shared && r.done[p.name] {
			continue
		}
		result := Result{Kind: k.Name, Promise: p.name, Says: p.says}
		err := t.lacks(p)
		if err == nil {
			r.done[p.name] = true
			err = p.test(ctx, t)
		}
		if ctx.Err() != nil {
			err = skip("interrupted")
		}
		r.report(result, err)
		t.cleanup(ctx)
	}
}

func (r *run) report(result Result, err error) {
	var why skip
	switch {
	case err == nil:
		result.Status = Passed
	case errors.As(err, &why):
		result.Status = Skipped
		result.Detail = err.Error()
	default:
		result.Status = Failed
		result.Detail = err.Error()
	}
	r.results = append(r.results, result)
	if r.Report != nil {
		r.Report(result)
	}
}

// lacks returns a [skip] if the kind does not have a capability that the promise needs.
func (t *trial) lacks(p promise) error {
	for _, c := range p.needs {
		if !has(t.kind, c) {
			return skip("the kind lacks " + string(c))
		}
	}
	return nil
}

// promises returns all promises, in the order of their tests.
func promises() []promise {
	var all []promise
	for _, group := range [][]promise{
		readPromises(), writePromises(), conditionPromises(), tagPromises(), deletePromises(), changePromises(),
		protocolPromises(),
	} {
		all = append(all, group...)
	}
	return all
}

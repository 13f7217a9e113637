package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/span"
)

// catalogues replaces the catalogue of a running gateway.
type catalogues struct {
	// dir is the folder of the catalogue; empty for the embedded catalogue.
	dir     string
	gate    catalogue.Gate
	server  *server.Server
	log     *zap.Logger
	compile func(sdl.Catalogue) (*service.Service, error)
	results *prometheus.CounterVec
	// replaced, if not nil, is called after the catalogue was replaced, with the hash of the new one. ctx has the
	// caller who requested the reload.
	replaced func(ctx context.Context, hash string)
	// keys encrypt sensitive values; nil if there are none.
	keys    *keyring.Keyring
	exports *exports
	// numbers is the file of field numbers for standard methods; empty if there are no standard methods.
	numbers string
	// turn is a lock that one reload or purge holds at a time. To take it, an element is sent.
	turn chan struct{}

	mu      sync.Mutex // guards all below
	served  sdl.Catalogue
	service *service.Service
	changed chan struct{} // closed when service is another one
	// fill begins to fill an index, and returns a function that ends the filling. It is nil before Run.
	fill func(*index.Index) (stop func())
	// stop ends the filling of the current catalogue's index.
	stop func()
}

var _ reload.Catalogues = (*catalogues)(nil)

func newCatalogues(dir string, served sdl.Catalogue, svc *service.Service) *catalogues {
	return &catalogues{
		dir: dir, served: served, service: svc, turn: make(
			chan struct{},
			1,
		), changed: make(chan struct{}), stop: func() {},
		results: prometheus.NewCounterVec(
			prometheus.CounterOpts{
				Name: "sluice_catalogue_reloads_total",
				Help: "Reloads of the catalogue by result: replaced, unchanged, refused, failed.",
			},
			[]string{"result"},
		),
	}
}

// Run runs the current service, and the services that replace it, until ctx ends.
func (c *catalogues) Run(ctx context.Context) error {
	var filling sync.WaitGroup
	defer filling.Wait()
	c.mu.Lock()
	c.fill = func(x *index.Index) func() {
		ctx, stop := context.WithCancel(ctx)
		filling.Go(func() { _ = x.Run(ctx) }) // it has no errors
		return stop
	}
	c.mu.Unlock()
	for {
		c.mu.Lock()
		svc, changed := c.service, c.changed
		c.mu.Unlock()
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- svc.Run(run) }()
		select {
		case <-changed:
			stop()
			<-done // its error is ignored: the next service has the same error
		case err := <-done:
			stop()
			return err
		}
	}
}

// hangups reloads the catalogue after each SIGHUP, until ctx ends.
func (c *catalogues) hangups(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			c.Reload(ctx, reload.Request{})
		}
	}
}

// current returns the service of the served catalogue.
func (c *catalogues) current() *service.Service {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service
}

// reloadTime is the time limit of a reload, including the wait for another reload to end.
const reloadTime = 5 * time.Minute

// Reload implements [reload.Catalogues]. After an error, the previous catalogue is still served. The lines of the
// answer are also logged.
func (c *catalogues) Reload(ctx context.Context, r reload.Request) reload.Answer {
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	out, err := reload.Answer{}, error(context.DeadlineExceeded)
	select {
	case c.turn <- struct{}{}:
		if r.Purge != "" {
			out, err = c.purge(ctx, r)
		} else {
			out, err = c.reload(ctx, r)
		}
		<-c.turn
	case <-ctx.Done():
	}
	c.mu.Lock()
	out.Hash, out.Files = c.served.Outline.Hash(), c.served.Files
	c.mu.Unlock()
	if err != nil {
		out.Result, out.Lines = failedResult(err), []string{err.Error()}
		var many exit.LinesError
		if errors.As(err, &many) {
			out.Lines = many.Lines
		}
	}
	if r.DryRun {
		return out
	}
	if r.Purge != "" {
		c.logPurge(ctx, r.Purge, out)
		return out
	}
	c.results.WithLabelValues(string(out.Result)).Inc()
	if out.Result == reload.Replaced && c.replaced != nil {
		c.replaced(ctx, out.Hash)
	}
	fields := append(
		callerFields(ctx),
		zap.String("result", string(out.Result)),
		zap.String("catalogue", out.Hash),
		zap.String("files", out.Files),
	)
	if err != nil {
		c.log.Error(
			"the catalogue was not replaced; the one before is served on",
			append(fields, zap.Strings("why", out.Lines))...,
		)
	} else {
		c.log.Info(
			"the catalogue was read again",
			append(
				fields,
				zap.Stringers("changes", out.Changes),
				zap.Strings("tightened", out.Tightened),
				zap.Strings("hidden", out.Hidden),
			)...,
		)
	}
	return out
}

// callerFields returns log fields with the caller, if the caller is known.
func callerFields(ctx context.Context) []zap.Field {
	who := access.CallerFrom(ctx)
	if who.Identity == nil {
		return nil
	}
	fields := []zap.Field{
		zap.Stringer("caller", who.Identity),
		zap.Stringer("address", who.Address),
		zap.String("requestId", who.Request),
	}
	if id := span.OtherID(who.Trace, who.Request); id != "" {
		fields = append(fields, zap.String("traceId", id))
	}
	return fields
}

// purge removes stored data that no catalogue describes any more: the resources of a kind, or the values of a field.
func (c *catalogues) purge(ctx context.Context, r reload.Request) (out reload.Answer, err error) {
	out.Result = reload.Unchanged
	kind, path, _ := strings.Cut(r.Purge, ".")
	purged, err := c.gate.Purge(ctx, catalogue.Purge{
		Kind:   kind,
		Path:   path,
		Served: c.served.Outline,
		Actor:  access.ActorFrom(ctx).String(),
		DryRun: r.DryRun,
		Keys:   c.keys,
	})
	if refused, ok := errors.AsType[*catalogue.PurgeError](err); ok {
		return out, exit.Lines([]string{refused.Error()})
	}
	if err == nil && path == "" && purged.Removed+purged.Kept == 0 {
		if near := nearKinds(kind, c.served.Outline); len(near) > 0 {
			return out, exit.Lines([]string{fmt.Sprintf("nothing is stored of kind %s; kinds with a name like it: %s",
				kind, strings.Join(near, ", "))})
		}
	}
	out.Purged = &purged
	return out, err
}

// maxTypos is the maximum edit distance between similar names. For names of up to three letters, it is one.
const maxTypos = 2

// nearKinds returns the kinds that the user may have meant: those with names similar to name.
func nearKinds(name string, served catalogue.Outline) (near []string) {
	typos := min(max(len(name)/2, 1), maxTypos)
	for kind := range served.Kinds {
		if levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(kind)) <= typos {
			near = append(near, kind)
		}
	}
	slices.Sort(near)
	return near
}

func (c *catalogues) logPurge(ctx context.Context, what string, out reload.Answer) {
	fields := append(callerFields(ctx), zap.String("what", what))
	if out.Purged != nil {
		fields = append(fields, zap.Int("removed", out.Purged.Removed), zap.Int("kept", out.Purged.Kept))
	}
	if len(out.Lines) > 0 {
		c.log.Error("what no catalogue names was not purged", append(fields, zap.Strings("why", out.Lines))...)
	} else {
		c.log.Info("what no catalogue names was purged", fields...)
	}
}

// reload replaces the served catalogue by the one that is requested. For a dry run it only returns what would happen.
// It prepares everything before the store accepts the catalogue. The files of a request are put into the folder before
// the store records the catalogue. If the process dies in between, the next process serves the new files. If they break
// something, it must again be allowed by --allow-breaking.
func (c *catalogues) reload(ctx context.Context, r reload.Request) (out reload.Answer, err error) {
	if c.dir == "" {
		return out, errors.New("the gateway serves the kinds of its release, which cannot be replaced; start it with --catalogue DIR")
	}
	next, staged, err := c.read(r)
	if staged != nil {
		defer c.discard(staged)
	}
	if err != nil {
		return out, err
	}
	if r.AllowBreaking {
		if out.GivenUp, err = c.gate.GivenUp(ctx, next.Candidate()); err != nil {
			return out, err
		}
	}
	if next.Files == c.served.Files {
		out.Result = reload.Unchanged
		if r.DryRun {
			return out, nil
		}
		candidate := next.Candidate() // in the meantime another gateway may have replaced the accepted catalogue
		candidate.AllowBreaking = r.AllowBreaking
		err = sdl.Accept(ctx, c.gate, candidate)
		if err == nil && staged != nil {
			err = staged.Replace()
		}
		return out, err
	}
	out.Result = reload.Replaced
	differences := next.Changes(c.served)
	if err := sdl.RefuseMoves(differences); err != nil {
		return out, err
	}
	svc, err := c.compile(next)
	if err != nil {
		return out, err
	}
	served, err := c.servedCatalogue(next, svc)
	if err != nil {
		return out, err
	}
	g, err := c.server.Prepare(served)
	if err != nil {
		return out, err
	}
	out.Changes = differences
	if out.Hidden, err = c.gate.Hidden(ctx, c.served.Outline, next.Outline); err != nil {
		return out, err
	}
	candidate := next.Candidate()
	candidate.AllowBreaking, candidate.DryRun = r.AllowBreaking, r.DryRun
	if r.DryRun {
		if err = sdl.Accept(ctx, c.gate, candidate); err == nil {
			out.Tightened = c.tightened(ctx, svc, r.Violations)
		}
		return out, err
	}
	stop, err := c.fillAhead(ctx, svc, candidate)
	if err != nil {
		return out, err
	}
	defer func() { stop() }()
	out.Tightened = c.tightened(ctx, svc, r.Violations)
	out.Rebinding = rebinding(c.current(), svc)
	if err = c.accept(ctx, candidate, staged); err == nil {
		stop = c.serve(next, svc, g, stop)
	}
	return out, err
}

// rebinding returns the kinds whose references are declared differently in the next service. Their stored references
// must be derived again.
func rebinding(current, next *service.Service) (names []string) {
	for _, k := range next.Kinds() {
		was, err := current.Kind(k.Name)
		if err == nil && !slices.Equal(was.References, k.References) {
			names = append(names, k.Name)
		}
	}
	return names
}

// tightenedTime is the time limit of the search for stored resources that violate stricter rules.
const tightenedTime = 10 * time.Second

// tightened returns a line for each kind with stored resources that violate stricter rules of the next service. If all
// is set, it adds a line for each of these resources.
func (c *catalogues) tightened(ctx context.Context, next *service.Service, all bool) (lines []string) {
	found, err := next.Tightened(ctx, c.current(), tightenedTime)
	if err != nil {
		c.log.Warn("the stored resources were not held against what the catalogue tightens", zap.Error(err))
	}
	for _, of := range found {
		lines = append(lines, of.String())
		if all {
			lines = append(lines, of.Lines()...)
		}
	}
	return lines
}

// fillTime is how long a reload waits until the index of the new service is complete. The old service is used
// meanwhile. A million resources take about a minute.
const fillTime = reloadTime - time.Minute

// fillAhead fills the index of a service before the service is used, so that lists need not wait. Meanwhile there are
// two indexes in memory. It returns an error if the store would refuse the catalogue.
func (c *catalogues) fillAhead(
	ctx context.Context,
	svc *service.Service,
	next catalogue.Candidate,
) (stop func(), err error) {
	c.mu.Lock()
	fill := c.fill
	c.mu.Unlock()
	if fill == nil || svc.Index() == nil {
		return func() {}, nil
	}
	next.DryRun = true
	if err := sdl.Accept(ctx, c.gate, next); err != nil {
		return nil, err
	}
	stop = fill(svc.Index())
	ctx, cancel := context.WithTimeout(ctx, fillTime)
	defer cancel()
	if err := svc.Index().Filled(ctx); err != nil {
		c.log.Warn("the catalogue is served before its kinds are all in memory", zap.Duration("after", fillTime))
	}
	return stop, nil
}

// accept puts the files of a catalogue into the folder and submits the catalogue to the store. If the store refuses,
// the old files are restored.
func (c *catalogues) accept(ctx context.Context, next catalogue.Candidate, staged *reload.Staged) error {
	if staged == nil {
		return sdl.Accept(ctx, c.gate, next)
	}
	dry := next
	dry.DryRun = true
	if err := sdl.Accept(ctx, c.gate, dry); err != nil {
		return err
	}
	if err := staged.Replace(); err != nil {
		return err
	}
	err := sdl.Accept(ctx, c.gate, next)
	if err == nil {
		return nil
	}
	if undo := staged.Replace(); undo != nil {
		return fmt.Errorf("%s; the folder keeps the new files, since it cannot be put back: %w",
			exit.OneLine(err), undo)
	}
	return err
}

// discard removes the staged folder, or the old folder if the staged one has replaced it.
func (c *catalogues) discard(staged *reload.Staged) {
	if err := staged.Discard(); err != nil {
		c.log.Warn("what an apply has left beside the folder of the catalogue cannot be removed", zap.Error(err))
	}
}

// failedResult returns the result of a reload that failed.
func failedResult(err error) reload.Result {
	var mistake exit.UsageError
	if errors.As(err, new(exit.LinesError)) || errors.As(err, &mistake) {
		return reload.Refused
	}
	return reload.Failed
}

// read reads the requested catalogue. If the request has files, they are staged beside the folder.
func (c *catalogues) read(r reload.Request) (sdl.Catalogue, *reload.Staged, error) {
	if r.Files == nil {
		next, err := sdl.Read(c.dir)
		if err == nil {
			err = next.CheckReleased()
		}
		return next, nil, err
	}
	next, err := sdl.FromTexts(r.Files, r.Folder)
	if err == nil {
		err = next.CheckReleased()
	}
	if err != nil {
		return sdl.Catalogue{}, nil, err
	}
	staged, err := reload.Stage(c.dir, r.Files, sdl.HasFile)
	if err != nil {
		return sdl.Catalogue{}, nil, fmt.Errorf("the folder of the gateway cannot be replaced: %w", err)
	}
	return next, staged, nil
}

// serve begins to serve a catalogue. stop ends the filling of the index of svc. serve returns the stop function of the
// catalogue that was served before.
func (c *catalogues) serve(
	next sdl.Catalogue,
	svc *service.Service,
	g *server.Generation,
	stop func(),
) (before func()) {
	c.server.Replace(g)
	logUnconfigured(c.log, svc)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served, c.service = next, svc
	before, c.stop = c.stop, stop
	close(c.changed)
	c.changed = make(chan struct{})
	return before
}

// servedCatalogue returns a catalogue, with its standard methods, in the form for the server. svc is the service of its
// stored kinds.
func (c *catalogues) servedCatalogue(next sdl.Catalogue, svc *service.Service) (server.Catalogue, error) {
	out, err := servedCatalogue(next, svc)
	if err != nil {
		return server.Catalogue{}, err
	}
	out.Methods, err = methodsOf(next, out, c.numbers)
	return out, err
}

// servedCatalogue returns a catalogue in the form for the server. svc is the service of its stored kinds.
func servedCatalogue(c sdl.Catalogue, svc *service.Service) (server.Catalogue, error) {
	newest, previous := svc, svc
	if c.Previous != nil {
		var err error
		if newest, err = svc.Newest(c.Kinds); err != nil {
			return server.Catalogue{}, err
		}
		if previous, err = svc.Previous(c.Previous); err != nil {
			return server.Catalogue{}, err
		}
	}
	out := server.Single(newest, c.API)
	out.Hash, out.Files = c.Outline.Hash(), c.Files
	for _, v := range c.Versions {
		version := server.Version{Number: v.Number, State: v.State, SDL: v.API}
		of := newest
		if v.Previous {
			of = previous
		}
		if v.Served() {
			version.API = server.API{Service: of.View(v.Names()), Schema: v.Schema}
		}
		out.Versions = append(out.Versions, version)
	}
	return out, nil
}

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/release"
	"github.com/sluicegw/sluice/graph/transport"
)

// Version is a version of the API of a catalogue: a released one or a candidate.
type Version struct {
	release.Number
	release.State
	// API is the API in this version; zero if the version was withdrawn.
	API API
	// SDL is the schema of the version as it was released, without descriptions.
	SDL string
}

// The names of APIs that are not versions. newestAPI includes parts that are not released. firstMajor is the name of
// the first major; if no version was released, it is another name of the newest API.
const (
	newestAPI  = "newest"
	firstMajor = "v1"
)

// unreleased is the name of the newest API in metrics and logs.
const unreleased = "unreleased"

// The paths of the API and of information about its versions.
const (
	apiPath      = "/graphql"
	versionsPath = "/versions"
	schemaPath   = "/schema.graphql"
)

// versionForm matches the name of a version, such as v1.10, or of a major, such as v1.
var versionForm = regexp.MustCompile(`^v[1-9][0-9]{0,5}(\.(0|[1-9][0-9]{0,5}))?$`)

// apiAt returns the name of the API at a path, whether or not it is served; "" for other paths. If no version was
// released, the newest API has two paths.
func (g *Generation) apiAt(path string) string {
	before, found := strings.CutSuffix(path, apiPath)
	switch {
	case !found:
		return ""
	case before == "":
		return newestAPI
	case before == "/"+firstMajor:
		return firstMajor
	case len(g.versions) == 0:
		return ""
	}
	name := before[1:]
	if before[0] != '/' || !versionForm.MatchString(name) {
		return ""
	}
	return name
}

// servedVersion is a version that requests can use.
type servedVersion struct {
	*Version
	// headers are set in each answer. ack is the payload of connection_ack.
	headers map[string]string
	ack     json.RawMessage
}

// addVersions adds the executors of the versions. Requests for a major reach its newest released version.
func (s *Server) addVersions(g *Generation) error {
	versions := slices.Clone(g.catalogue.Versions)
	slices.SortFunc(versions, func(a, b Version) int { return a.Compare(b.Number) })
	g.versions = versions
	g.served = map[string]*servedVersion{}
	g.unsupported = s.unsupportedAPI(g)
	g.released = g.catalogue.released()
	if !g.released {
		g.executors[firstMajor] = g.executors[newestAPI]
	}
	for i := range versions {
		v := &versions[i]
		if !v.Served() {
			continue
		}
		name := v.Number.String()
		if err := s.addAPI(g, name, v.API); err != nil {
			return fmt.Errorf("api %s: %w", name, err)
		}
		served := &servedVersion{Version: v}
		served.announce()
		g.served[name] = served
		if major := majorOf(v.Number); !v.Candidate {
			g.served[major] = served
			g.executors[major] = g.executors[name]
		}
	}
	return nil
}

// majorOf returns the name of a version's major, such as v1.
func majorOf(n release.Number) string { return fmt.Sprintf("v%d", n.Major) }

// announce prepares the deprecation notices of a version: headers (RFC 9745 and RFC 8594), and the payload of
// connection_ack for WebSockets.
func (v *servedVersion) announce() {
	v.headers = map[string]string{}
	if v.Deprecated.IsZero() {
		return
	}
	said := map[string]string{"version": v.Number.String(), "deprecated": v.Deprecated.Format(time.DateOnly)}
	v.headers["Deprecation"] = fmt.Sprintf("@%d", v.Deprecated.Unix())
	v.headers["Link"] = "<" + versionsPath + `>; rel="deprecation"; type="application/json"`
	if !v.Sunset.IsZero() {
		v.headers["Sunset"] = v.Sunset.UTC().Format(http.TimeFormat)
		said["sunset"] = v.Sunset.Format(time.DateOnly)
	}
	if v.Why != "" {
		said["why"] = v.Why
	}
	v.ack, _ = json.Marshal(said) // texts always marshal
}

// ack returns the payload of connection_ack for a connection; nil if there is none.
func (s *Server) ack(ctx context.Context) json.RawMessage {
	if v := s.generation.Load().served[factsOf(ctx).api]; v != nil {
		return v.ack
	}
	return nil
}

// versioned returns a handler that passes requests to versions of the API to next, and answers requests for information
// about versions itself. It passes all other requests to others, including requests to the newest API.
func (s *Server) versioned(next, others http.Handler) http.Handler {
	schema := s.identified(http.HandlerFunc(s.schemaOf), s.refuseCaller)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := s.generation.Load()
		name := factsOf(r.Context()).api
		if len(g.versions) == 0 || name == newestAPI || name == "" && !g.knows(r.URL.Path) ||
			name == firstMajor && !g.released {
			others.ServeHTTP(w, r)
			return
		}
		r.Pattern = "/{version}" + apiPath // in metrics, unless the version is served
		switch {
		case r.URL.Path == versionsPath:
			r.Pattern = versionsPath
			s.getOnly(w, r, http.HandlerFunc(g.list))
		case name == "":
			r.Pattern = "/{version}" + schemaPath
			s.getOnly(w, r, schema)
		case g.served[name] == nil:
			refuseWith(w, r, http.StatusNotFound, g.unsupportedText(name), g.unsupportedExtensions())
		default:
			r.Pattern = "/" + name + apiPath
			for header, value := range g.served[name].headers {
				w.Header().Set(header, value)
			}
			next.ServeHTTP(w, r)
		}
	})
}

// knows reports whether a path is one with information about versions.
func (g *Generation) knows(path string) bool {
	if path == versionsPath {
		return true
	}
	before, found := strings.CutSuffix(path, schemaPath)
	return found && before != "" && versionForm.MatchString(before[1:])
}

// getOnly serves GET and HEAD with a handler, and refuses other methods.
func (s *Server) getOnly(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuseMethod("GET, HEAD", "use GET")(w, r)
		return
	}
	handler.ServeHTTP(w, r)
}

// listedVersion is a version in the answer of /versions. Clients depend on its form.
type listedVersion struct {
	Version    string `json:"version"`
	Path       string `json:"path"`
	State      string `json:"state"`
	Deprecated string `json:"deprecated,omitempty"`
	Sunset     string `json:"sunset,omitempty"`
	Withdrawn  string `json:"withdrawn,omitempty"`
	Why        string `json:"why,omitempty"`
}

// The states of a listed version.
const (
	stateCandidate  = "CANDIDATE"
	stateServed     = "SERVED"
	stateDeprecated = "DEPRECATED"
	stateWithdrawn  = "WITHDRAWN"
)

// list answers requests for /versions.
func (g *Generation) list(w http.ResponseWriter, _ *http.Request) {
	out := struct {
		Newest     *string         `json:"newest"`
		Unreleased string          `json:"unreleased"`
		Versions   []listedVersion `json:"versions"`
	}{Unreleased: apiPath, Versions: []listedVersion{}}
	for _, v := range g.versions {
		if v.Served() && !v.Candidate {
			out.Newest = new(v.Number.String())
		}
		one := listedVersion{
			Version: v.Number.String(),
			Path:    "/" + v.Number.String() + apiPath,
			State:   stateServed,
			Why:     v.Why,
		}
		for _, day := range []struct {
			at   time.Time
			text *string
		}{{v.Deprecated, &one.Deprecated}, {v.Sunset, &one.Sunset}, {v.Withdrawn, &one.Withdrawn}} {
			if !day.at.IsZero() {
				*day.text = day.at.Format(time.DateOnly)
			}
		}
		switch {
		case v.Candidate:
			one.State = stateCandidate
		case !v.Served():
			one.State = stateWithdrawn
		case !v.Deprecated.IsZero():
			one.State = stateDeprecated
		}
		out.Versions = append(out.Versions, one)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// schemaOf answers with the schema of a version, unless introspection is hidden.
func (s *Server) schemaOf(w http.ResponseWriter, r *http.Request) {
	g := s.generation.Load()
	name := strings.TrimSuffix(r.URL.Path, schemaPath)[1:]
	v := g.served[name]
	switch {
	case v == nil:
		refuseWith(w, r, http.StatusNotFound, g.unsupportedText(name), g.unsupportedExtensions())
	case s.cfg.HideIntrospection:
		refuse(w, r, http.StatusForbidden, failure.CodeForbidden, "the schema is hidden here")
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(v.SDL))
	}
}

// nothingText returns the message for a path that does not exist.
func (g *Generation) nothingText() string {
	if len(g.versions) > 0 {
		return "there is nothing here; the API is at " + apiPath + ", and its versions are listed at " + versionsPath
	}
	return "there is nothing here; the API is at " + apiPath + " and " + consoleEndpoint
}

// unsupportedText returns the message for an API that is not served.
func (g *Generation) unsupportedText(name string) string {
	text := fmt.Sprintf("version %s of the API is not served", name)
	for _, v := range g.versions {
		if v.Number.String() == name {
			text = withdrawnText(name, v.Why)
		}
	}
	served := g.servedNames()
	if len(served) == 0 {
		return text + "; the API that is not released yet is at " + apiPath
	}
	return text + "; served are " + strings.Join(served, ", ")
}

// withdrawnText returns the message about a version that was withdrawn.
func withdrawnText(name, why string) string {
	return fmt.Sprintf("version %s of the API was withdrawn: %s", name, why)
}

// unsupportedExtensions returns the extensions of the error for an API that is not served.
func (g *Generation) unsupportedExtensions() map[string]any {
	return map[string]any{
		"code":      string(failure.CodeUnsupportedVersion),
		"supported": g.servedNames(),
		"retryable": false,
	}
}

// servedNames returns the names of the versions that are served, the oldest first.
func (g *Generation) servedNames() []string {
	out := []string{}
	for _, v := range g.versions {
		if v.Served() {
			out = append(out, v.Number.String())
		}
	}
	return out
}

// unsupportedAPI returns an executor that refuses every operation. It is used for connections to a version that is no
// longer served.
func (s *Server) unsupportedAPI(g *Generation) *transport.Executor {
	operations := &api{Server: s}
	return transport.NewExecutor(transport.ExecutorConfig{
		Engine: g.engine, Named: s.documents, Memory: s.memory, Accounts: operations, Present: operations.present,
		Answered: operations.answered, Recover: s.recovered, Documents: unsupported{g},
	})
}

// unsupported implements [transport.Documents] for an API that is not served.
type unsupported struct{ generation *Generation }

var _ transport.Documents = unsupported{}

// Parse implements [transport.Documents].
func (u unsupported) Parse(ctx context.Context, _ string) (transport.Document, gqlerror.List) {
	err := coded(string(failure.CodeUnsupportedVersion), "%s", u.generation.unsupportedText(factsOf(ctx).api))
	err.Extensions = u.generation.unsupportedExtensions()
	errcode.Set(err, string(failure.CodeUnsupportedVersion))
	return nil, gqlerror.List{err}
}

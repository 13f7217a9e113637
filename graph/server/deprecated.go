package server

import (
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"go.uber.org/zap"
)

// maxDeprecated is the maximum number of deprecated parts of the schema in a line of the access log.
const maxDeprecated = 20

// deprecatedExtension is the key of the *deprecatedUses in the statistics of an operation.
const deprecatedExtension = "deprecated"

// deprecatedUses are the deprecated parts of the schema that an operation uses.
type deprecatedUses struct {
	// names are the first maxDeprecated parts; more is the number of the others.
	names []string
	more  int
}

// useDeprecated counts the use of a deprecated part of the schema, and records it for the access log.
func (s *Server) useDeprecated(oc *graphql.OperationContext, coordinate string) {
	s.metrics.deprecated.WithLabelValues(coordinate).Inc()
	if !s.cfg.AccessLog {
		return
	}
	uses, _ := oc.Stats.GetExtension(deprecatedExtension).(*deprecatedUses)
	if uses == nil {
		uses = &deprecatedUses{}
		oc.Stats.SetExtension(deprecatedExtension, uses)
	}
	switch {
	case slices.Contains(uses.names, coordinate): // the document and a manifest can name the same
	case len(uses.names) < maxDeprecated:
		uses.names = append(uses.names, coordinate)
	default:
		uses.more++
	}
}

// deprecatedFields returns the fields of an access log line about the deprecated parts of the schema that an operation
// has used.
func deprecatedFields(oc *graphql.OperationContext) []zap.Field {
	uses, _ := oc.Stats.GetExtension(deprecatedExtension).(*deprecatedUses)
	if uses == nil {
		return nil
	}
	slices.Sort(uses.names) // those in values of variables come in any order
	fields := []zap.Field{zap.Strings("deprecated", uses.names)}
	if uses.more > 0 {
		fields = append(fields, zap.Int("deprecatedMore", uses.more))
	}
	return fields
}

// Package resolvers resolves the fields of major version 1 of the API. The
// bodies in zz_*.resolvers.go are generated from the SDL of the kinds and
// delegate to the few generic functions here; resolvers of fields that authors
// add by hand live in <file>.resolvers.go beside them.
package resolvers

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/service"
)

// Resolver is the root of all resolvers. Its fields are not exported, because
// generated methods, named for kinds, are: "Service" may be one.
type Resolver struct {
	service *service.Service
}

// New returns the resolvers over a service.
func New(s *service.Service) *Resolver { return &Resolver{service: s} }

// caller says who asks. Until access control exists, everybody is anonymous.
func caller(context.Context) service.Caller { return service.Caller{} }

// fail turns an error with several violations into as many errors of the
// response: all but the last are added, the last is returned.
func fail(ctx context.Context, err error) error {
	var e *service.Error
	if !errors.As(err, &e) {
		return err
	}
	all := e.Split()
	for _, one := range all[:len(all)-1] {
		graphql.AddError(ctx, one)
	}
	return all[len(all)-1]
}

const (
	maxMutationID = 128
	maxKinds      = 100
	maxIDs        = 100
)

// checkMutationID bounds what a caller wants back.
func checkMutationID(id *string) error {
	if id == nil || utf8.RuneCountInString(*id) <= maxMutationID {
		return nil
	}
	return tooLong("clientMutationId", "maxLength", maxMutationID, "characters")
}

func tooLong(path, rule string, limit int, what string) error {
	return &service.Error{
		Code: service.CodeValidationFailed, Path: path, Rule: rule, Limit: fmt.Sprint(limit),
		Message: fmt.Sprintf("%s: must have at most %d %s", path, limit, what),
	}
}

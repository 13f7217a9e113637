package resolvers

import (
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/scalar"
	"github.com/sluicegw/sluice/graph/v1/model"
)

// What bodies of kinds use that this module has none of: maps, varieties, expiry.

func Entries(m scalar.StringMap) []*model.MapEntry { return entries(m) }

func Text(s *string) string { return text(s) }

func Expiring(m service.Metadata, at graphql.Omittable[*time.Time]) service.Metadata {
	return expiring(m, at)
}

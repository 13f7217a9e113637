package gateway

import (
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/state"
)

// Formats are the versions of what a release stores. A store of a newer format is refused.
type Formats struct {
	// Embedded is the format of the embedded store, Redis of a store on Redis, Export of the files of sluice export.
	Embedded int `json:"embedded"`
	Redis    int `json:"redis"`
	Export   int `json:"export"`
}

// StoredFormats returns the formats of this release.
func StoredFormats() Formats {
	return Formats{Embedded: bolt.Format, Redis: redis.Format, Export: state.Format}
}

package gateway

import (
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/state"
)

// Formats are the versions of the formats in which a release stores data. A release refuses data with a newer version.
type Formats struct {
	// Embedded is the version of the embedded store, Redis of a store on Redis, and Export of the files of sluice
	// export.
	Embedded int `json:"embedded"`
	Redis    int `json:"redis"`
	Export   int `json:"export"`
}

// StoredFormats returns the versions that this release writes.
func StoredFormats() Formats {
	return Formats{Embedded: bolt.Format, Redis: redis.Format, Export: state.Format}
}

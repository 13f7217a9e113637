package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
)

// keysSetting names the file with keys.
const keysSetting = "encryption-keys-file"

// encryptionKeys returns the keys of a file or of the environment; nil for none. An error names
// the key that is wrong without showing any of it.
func encryptionKeys(ctx context.Context, file string) (*keyring.Keyring, error) {
	text, given := os.LookupEnv(config.KeysVariable)
	source := config.KeysVariable
	switch {
	case file == "" && !given:
		return nil, nil
	case file != "" && given:
		return nil, fmt.Errorf("%s and %s exclude each other; give the keys in one place",
			keysSetting, config.KeysVariable)
	case file != "":
		raw, err := config.ReadFile(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keysSetting, err)
		}
		text, source = string(raw), keysSetting
	}
	keys, err := keyring.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return keys, nil
}

// refuseWithoutKeys returns an error if the store has encrypted values. It is called for a gateway without keys: they
// were forgotten, and the gateway would store values in plain form.
func refuseWithoutKeys(ctx context.Context, store backend.Store, kinds []descriptor.Kind) error {
	var sensitive []string
	for _, k := range kinds {
		if k.Sensitive {
			sensitive = append(sensitive, k.Name)
		}
	}
	ids, err := service.Sealed(ctx, store, sensitive)
	switch {
	case err != nil:
		return errors.New(exit.OneLine(err))
	case len(ids) == 0:
		return nil
	}
	return exit.Usage(fmt.Errorf("%s: the store has values that are encrypted with the key %s, and no key is given. Give it; to end encryption, give it behind the word plain; "+
		"if it is lost, give a new one: then these values cannot be read, but written anew and deleted", keysSetting, strings.Join(
		ids,
		", ",
	)))
}

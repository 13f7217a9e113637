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
	"github.com/sluicegw/sluice/backend/keyring/kms"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
)

const (
	// keysSetting is the setting with the file of keys.
	keysSetting = "encryption-keys-file"
	// kmsSetting is the setting with the socket of the KMS plugin.
	kmsSetting = "encryption-kms"
)

// KeySource is the source of the keys that encrypt sensitive values.
type KeySource struct {
	// File is the file with the keys. If it is empty, they may be in an environment variable.
	File string
	// KMS is the socket of the KMS plugin that unwraps the keys; empty for none.
	KMS string
}

// encryptionKeys are the keys from a [KeySource].
type encryptionKeys struct {
	// ring is nil if there are no keys.
	ring *keyring.Keyring
	// stale is a message about keys that are wrapped with an earlier key of the KMS; empty if there are none.
	stale string
}

// read returns the keys. An error has the id of a wrong key, but nothing of the key itself.
func (s KeySource) read(ctx context.Context) (keys encryptionKeys, err error) {
	text, given := os.LookupEnv(config.KeysVariable)
	source := config.KeysVariable
	switch {
	case s.File == "" && !given && s.KMS != "":
		return keys, exit.Usage(fmt.Errorf("%s: it has no effect without keys: give %s or %s", kmsSetting, keysSetting, config.KeysVariable))
	case s.File == "" && !given:
		return keys, nil
	case s.File != "" && given:
		return keys, exit.Usage(fmt.Errorf("%s and %s exclude each other; give the keys in one place",
			keysSetting, config.KeysVariable))
	case s.File != "":
		raw, err := config.ReadFile(ctx, s.File)
		if err != nil {
			return keys, exit.Usage(fmt.Errorf("%s: %w", keysSetting, err))
		}
		text = string(raw)
		source = keysSetting
	}
	if s.KMS != "" {
		keys, err = unwrapKeys(ctx, text, s.KMS)
	} else {
		keys.ring, err = keyring.Parse(ctx, text, nil)
	}
	return keys, KeysError(source, err)
}

// KeysError returns an error for the operator about the keys in a file or variable. If the KMS has failed, it is not a
// usage error, because a later attempt may succeed.
func KeysError(source string, err error) error {
	var failed *keyring.KMSError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return fmt.Errorf("%s: %w", kmsSetting, err)
	}
	return exit.Usage(fmt.Errorf("%s: %w", source, err))
}

// unwrapKeys parses keys, some of which are wrapped by a KMS.
func unwrapKeys(ctx context.Context, text, socket string) (keys encryptionKeys, err error) {
	plugin, err := kms.New(kms.Config{Socket: socket})
	if err != nil {
		return keys, &keyring.KMSError{Err: err}
	}
	defer plugin.Close()
	current, err := plugin.KeyID(ctx)
	if err != nil {
		return keys, &keyring.KMSError{Err: err}
	}
	keys.ring, err = keyring.Parse(ctx, text, plugin)
	if ids := keys.ring.WrappedOtherwise(current); len(ids) > 0 {
		keys.stale = fmt.Sprintf("the KMS has another key now, %q, than the one with which it has wrapped %s; "+
			"`sluice key wrap` wraps these keys with the new one", current, strings.Join(ids, ", "))
	}
	return keys, err
}

// refuseWithoutKeys returns an error if the store has encrypted values. It is called if no keys are configured. They
// were probably forgotten, and the gateway would store new values without encryption.
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

package main

import (
	"fmt"
	"os"

	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// keysVariable holds keys that encrypt sensitive values. It is no flag: command lines
// are seen by others.
const keysVariable = config.EnvPrefix + "ENCRYPTION_KEYS"

// keysSetting names the file with keys.
const keysSetting = "encryption-keys-file"

// encryptionKeys are those of a file or of the environment; nil for none. An error says
// which key is wrong and has no part of it.
func encryptionKeys(file string) (*keyring.Keyring, error) {
	text, given := os.LookupEnv(keysVariable)
	source := keysVariable
	switch {
	case file == "" && !given:
		return nil, nil
	case file != "" && given:
		return nil, fmt.Errorf("%s and %s exclude each other; give the keys in one place", keysSetting, keysVariable)
	case file != "":
		raw, err := config.ReadFile(file)
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

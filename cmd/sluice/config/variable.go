package config

// The environment variables for which there is no flag. ContextsVariable has the path of the file of contexts.
// TokenVariable has a token, which cannot be a flag because other users can see command lines.
const (
	ContextsVariable = EnvPrefix + "CONTEXTS"
	TokenVariable    = EnvPrefix + "TOKEN"
)

// KeysVariable has the keys that encrypt sensitive values. There is no flag for it, because other users can see command
// lines.
const KeysVariable = EnvPrefix + "ENCRYPTION_KEYS"

// EditorVariable has the editor for the command edit. There is no flag for it.
const EditorVariable = EnvPrefix + "EDITOR"

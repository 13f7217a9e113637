package config

// Environment variables without a flag: the file of contexts, and a token, because flags appear in
// process lists.
const (
	ContextsVariable = EnvPrefix + "CONTEXTS"
	TokenVariable    = EnvPrefix + "TOKEN"
)

// KeysVariable holds the keys that encrypt sensitive values. There is no such flag,
// because other users can see command lines.
const KeysVariable = EnvPrefix + "ENCRYPTION_KEYS"

// EditorVariable names the editor of the command edit. There is no such flag.
const EditorVariable = EnvPrefix + "EDITOR"

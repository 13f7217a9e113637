package config

// Variables that are no flags: the file of contexts, and a token, since flags appear in process lists.
const (
	ContextsVariable = EnvPrefix + "CONTEXTS"
	TokenVariable    = EnvPrefix + "TOKEN"
)

// KeysVariable holds keys that encrypt sensitive values. It is no flag: command lines
// are seen by others.
const KeysVariable = EnvPrefix + "ENCRYPTION_KEYS"

// EditorVariable names the editor of edit; it is no flag.
const EditorVariable = EnvPrefix + "EDITOR"

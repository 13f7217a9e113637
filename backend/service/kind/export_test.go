package kind

// ChangeOf is changeOf with the parts of a body.
func (k *Kind) ChangeOf(was, next []byte) []byte {
	parts, err := partsOf(next)
	if err != nil {
		return nil
	}
	return k.changeOf(was, parts)
}

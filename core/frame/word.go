package frame

// longestWord is how much of a word WithoutCutWord drops; longer secrets are known by their first part.
const longestWord = 1 << 10

// WithoutCutWord returns data that was cut off, without its last word: that may be the first part of a secret, which no rule knows
// by a part, and what is behind a key of it.
func WithoutCutWord(data []byte) []byte {
	end := len(data)
	for end > 0 && len(data)-end < longestWord && ofWord(data[end-1]) {
		end--
	}
	return data[:end]
}

// ofWord reports whether a byte may be within a token, a key or a URL with a password.
func ofWord(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', '"', '\'', '`', '\\', ',', ';', '{', '}', '[', ']', '(', ')', '<', '>':
		return false
	}
	return true
}

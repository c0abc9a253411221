// Package seeded has invented secrets for tests, put together so that no scanner takes this
// file for a leak.
package seeded

import "strings"

// Kind is a kind of secret, in the text that usually is around it.
type Kind struct {
	Name   string
	Text   string
	Secret string // the part of the text that must be gone
}

// Kinds are the seeded kinds.
func Kinds() []Kind {
	var out []Kind
	whole := func(name string, parts ...string) {
		s := strings.Join(parts, "")
		out = append(out, Kind{name, s, s})
	}
	in := func(name, before, secret, after string) {
		out = append(out, Kind{name, before + secret + after, secret})
	}
	whole("aws access key", "AK", "IA", "QR7BCDEFGHIJ2345")
	whole("openai", "s", "k-", "proj-0123456789abcdefABCDEF")
	whole("github", "gh", "p_", "wJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sAeUiO")
	whole("gitlab", "glp", "at-", "0123456789abcdefghij")
	whole("slack", "xo", "xb-", "1234567890-abcdefghij")
	whole("google", "AI", "za", "SyB4vT1zR8cY5nL3pH6gF0sAeUiOwJ2kQ9d")
	whole("huggingface", "h", "f_", "wJkQdXmBvTzRcYnLpHgFsAeUiOaBcDeFgHiJ")
	whole("npm", "np", "m_", "wJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sAeUiO")
	whole("jwt", "ey", "JhbGciOiJIUzI1NiJ9", ".ey", "JzdWIiOiIxMjM0In0", ".c2lnbmF0dXJlLWJ5dGVz")
	whole("private key", "-----BEGIN RSA PRIVATE ", "KEY-----\nMIIEowIBAAKCAQEA0123456789\nabcdefghijklmnop==\n-----END RSA PRIVATE KEY-----")
	in("aws secret key", "AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG"+"+bPxRfiCYEXAMPLEKEY", "\n")
	in("url password", "postgres://joe:", "pa55word-of-joe", "@db.example:5432/x")
	in("bearer", "Authorization: Bearer ", "0123456789abcdef.ghijkl", "\n")
	return out
}

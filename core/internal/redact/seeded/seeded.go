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
	const hex32, hex64 = "9f86d081884c7d659a2feaa0c55ad015", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	const mix20, mix40 = "wJ2kQ9dX7mB4vT1zR8cY", "wJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sAeUiOaZ1x"
	whole("anthropic", "sk-", "ant-api03-", mix40, mix40)
	whole("stripe live", "sk_", "live_", mix20)
	whole("stripe restricted", "rk_", "live_", mix20)
	whole("stripe webhook", "whs", "ec_", mix40)
	whole("sendgrid", "S", "G.", mix20, "aB.", mix40)
	whole("twilio key", "S", "K", hex32)
	whole("slack app", "xa", "pp-1-A0123456789-1234567890123-", hex64)
	out = append(out, Kind{"slack webhook", "https://hooks.slack" + ".com/services/T01234567/B01234567/" + mix20 + "aBcD", "B01234567/" + mix20})
	in("azure storage key", "DefaultEndpointsProtocol=https;Account"+"Key=", "wJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sAeUiOaZ1xwJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sAeUiOaZ1xAAAAAA==", ";")
	in("azure sas", "https://x.blob.core.windows.net/c?sv=2022&si"+"g=", "wJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sAeUiOaZ1x%3D", " ")
	whole("azure client secret", "aB1", "8Q~", "wJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sAeU")
	whole("google oauth", "ya", "29.", mix40)
	whole("google client secret", "GOC", "SPX-", mix20, "aBcDeFgH")
	whole("vault", "hv", "s.", mix40, mix40)
	whole("pypi", "py", "pi-AgEIcHlwaS5vcmcC", mix40, mix20)
	whole("docker", "dck", "r_pat_", mix20, "aBcDeFg")
	whole("digitalocean", "do", "p_v1_", hex64)
	whole("databricks", "da", "pi", hex32)
	whole("shopify", "shp", "at_", hex32)
	in("telegram", "bot ", "1234567890:"+"AAwJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sAe", " ")
	in("discord bot", "DISCORD_TOKEN=", "MTAxMjM0NTY3ODkwMTIzNDU2Nw"+".GabcdE."+"wJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0", "\n")
	out = append(out, Kind{"discord webhook", "https://discord" + ".com/api/webhooks/123456789012345678/" + mix40 + mix20, mix40 + mix20})
	whole("groq", "gs", "k_", mix40, "aBcDeFgHiJkL")
	whole("xai", "xa", "i-", mix40, mix40)
	whole("replicate", "r", "8_", mix40[:37])
	whole("age", "AGE-SECRET", "-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE")
	in("aws session token", "AWS_SESSION"+"_TOKEN=", "FwoGZXIvYXdzE"+mix40+mix40, "\n")
	in("ado password", "Server=db;User Id=sa;Pass"+"word=", "Tr0ub4dor!3", ";Encrypt=true")
	in("curl user", "curl -u joe:", "hunter2horse", " https://x.example")
	in("option", "mysql --host db --pass"+"word=", "hunter2horse", " -e x")
	in("option, apart", "tool --pass"+"word ", "hunter2horse", " -v")
	in("environment", "export DB_PASS"+"WORD=", "hunter2horse", "\n")
	in("yaml", "db:\n  pass"+"word: ", "hunter2horse", "\n  user: joe\n")
	in("json password", `{"pass`+`word":"`, "hunter2horse", `"}`)
	in("json db_password", `{"db_pass`+`word": "`, "hunter2horse", `"}`)
	in("json api_key", `{"api`+`_key":"`, "9f86d081884c7d65", `"}`)
	in("json client_secret", `{"client_`+`secret":"`, "9f86d081884c7d65", `"}`)
	in("name and value", `{"name":"DB_PASS`+`WORD","value":"`, "hunter2horse", `"}`)
	in("cookie", "Coo"+"kie: session=", "wJ2kQ9dX7mB4vT1zR8cY", "; theme=dark\n")
	in("api key header", "X-Api"+"-Key: ", "wJ2kQ9dX7mB4vT1z", "\n")
	in("basic", "Authorization: Basic ", "am9lOmh1bnRlcjJob3JzZQ==", "\n")
	whole("linear", "li", "n_api_", mix40)
	whole("notion", "nt", "n_12345678901", mix20, "wJ2kQ9dX7mB4vT1")
	whole("grafana", "gl", "sa_", "wJ2kQ9dX7mB4vT1zR8cY5nL3pH6gF0sA", "_9f86d081")
	whole("new relic", "NR", "AK-", "WJ2KQ9DX7MB4VT1ZR8CY5NL3PH6")
	whole("postman", "PM", "AK-", hex32[:24], "-", hex32, "ab")
	in("heroku", "HEROKU_API"+"_KEY=", "9f86d081-884c-4d65-9a2f-eaa0c55ad015", "\n")
	in("mailchimp", "MAILCHIMP_API"+"_KEY=", hex32+"-us12", "\n")
	whole("terraform", "at", "lasv1.", mix40, mix40[:24])
	whole("openrouter", "sk-o", "r-v1-", hex64)
	return out
}

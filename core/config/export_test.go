package config

// MaxFile and MaxValues are the limits on a file.
const (
	MaxFile   = maxFile
	MaxValues = maxValues
)

// Environment is the environment of the tests.
func Environment(name string) (string, bool) {
	value, set := map[string]string{
		"HOME": "/home/ada", "EMPTY": "", "PORT": "7801", "ROWS": "500", "WAIT": "2s", "ON": "true",
		"HOST": "db.internal", "PASSWORD": "sw0rdf1sh", "INJECT": "x\nlog: {level: debug}",
	}[name]
	return value, set
}

// ErrorText is the text of an error; empty for nil.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

package hazard

// known are the claims that do not hold yet, with what is wrong.
var known = map[string]string{}

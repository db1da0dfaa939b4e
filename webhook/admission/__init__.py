"""Door one: AdmissionReviews over HTTPS, as the API server sends them."""

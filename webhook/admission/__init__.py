"""The webhook entry point: AdmissionReviews over HTTPS, as the API server sends them."""

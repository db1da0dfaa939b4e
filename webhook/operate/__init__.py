"""Operations on an installed webhook: doctor, status, wait, disable and enable, rotate, uninstall."""
